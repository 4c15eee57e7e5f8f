import os

import pytest

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.references.templates import Templates
from virtualzarr_refs.references.trust import Trust
from virtualzarr_refs.references.urls import SetUrls, folder_of, name_of
from virtualzarr_refs.sources.location import join


@pytest.mark.parametrize(
    ("url", "folder", "name"),
    [
        ("/a/b/s.json", "/a/b", "s.json"),
        ("file:///a/b/s.json", "/a/b", "s.json"),
        ("s3://b/k/s.json", "s3://b/k", "s.json"),
        ("s3://b/s.json", "s3://b", "s.json"),
        ("https://h/a/s.json?x=1/2", "https://h/a?x=1/2", "s.json"),
        ("simplecache::s3://b/a/s.json", "simplecache::s3://b/a", "s.json"),
        ("zip://a/s.json::s3://b/f.zip", "zip://a::s3://b/f.zip", "s.json"),
        ("memory://s.json", "memory://", "s.json"),
    ],
)
def test_folder_and_name(url, folder, name):
    assert (folder_of(url), name_of(url)) == (folder, name)


def test_a_file_is_found_again_in_its_folder():
    for url in ("/a/b/s.json", "s3://b/k/s.json", "https://h/s.json?x=1", "zip://a/s.json::s3://b/f.zip"):
        assert join(folder_of(url), name_of(url)) == url
    assert join("memory://", "x/y.bin") == "memory:///x/y.bin"


@pytest.mark.parametrize(
    ("given", "resolved"),
    [
        ("x.nc", "s3://bucket/sets/x.nc"), ("../data/x.nc", "s3://bucket/data/x.nc"), ("s3://o/x", "s3://o/x"),
        ("{{u}}/x.nc", "https://h.org/d/x.nc"), ("{{here}}.nc", "s3://bucket/sets/data.nc"),
    ],
)  # fmt: skip
def test_relative_urls_start_at_the_folder_of_the_set(given, resolved):
    trust = Trust.in_set_at("s3://bucket/sets/a.json", None)
    urls = SetUrls("s3://bucket/sets", trust, Templates({"u": "https://h.org/d", "here": "data"}))
    assert urls.resolve(given) == resolved


def test_local_ones_too():
    assert SetUrls("/a/b", Trust()).resolve("../x.nc") == "/a/x.nc"
    assert folder_of("set.json") == os.getcwd()  # noqa: PTH109


def test_the_rule_is_applied_to_what_templates_give():
    trust = Trust.in_set_at("https://h/set.json", None)
    with pytest.raises(ReferenceSetError, match="allow="):
        SetUrls("https://h", trust, Templates({"u": "file://"})).resolve("{{u}}/etc/passwd")


@pytest.mark.parametrize("url", [None, 5, "", ["x"]])
def test_what_is_no_url(url):
    with pytest.raises(ReferenceSetError, match="url"):
        SetUrls("/a", Trust()).resolve(url)
