from pathlib import Path

import pytest

from virtualzarr_refs.sources.location import is_relative, join, local_path

REMOTE_URLS = ["simplecache::https://host/a.nc", "zip://in.nc::file:///a.zip", "memory://a", "s3://b/a", "zip::a.zip"]


@pytest.mark.parametrize("url", REMOTE_URLS)
def test_remote_and_chained_urls_have_no_local_path(url):
    assert local_path(url) is None


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/data/a.nc", "/data/a.nc"),
        ("a.nc", "a.nc"),
        ("../a%20b.nc", "../a%20b.nc"),
        ("/data/http://odd", "/data/http://odd"),
        ("/data/a::b.nc", "/data/a::b.nc"),
        ("file:///data/a.nc", "/data/a.nc"),
        ("FILE:///data/a.nc", "/data/a.nc"),
        ("file:/data/a.nc", "/data/a.nc"),
        ("file://localhost/data/a.nc", "/data/a.nc"),
        ("file://data/a.nc", "data/a.nc"),
        ("file:///data/a%20b%C3%BC.nc", "/data/a bü.nc"),
        ("file:///data/%2e%2e/a.nc", "/data/../a.nc"),
        ("local:///data/a%20b.nc", "/data/a%20b.nc"),
        ("file:///data/a?b#c.nc", "/data/a?b#c.nc"),
        ("file:///data/a::b.nc", "/data/a::b.nc"),
        ("~/a.nc", str(Path("~/a.nc").expanduser())),
    ],
)
def test_local_path(url, path):
    assert local_path(url) == path


def test_a_file_url_written_without_escaping_names_the_file_that_exists(tmp_path):
    literal = tmp_path / "a%20b.nc"
    literal.touch()
    assert local_path(f"file://{literal}") == str(literal)
    (tmp_path / "a b.nc").touch()
    assert local_path(f"file://{literal}") == str(tmp_path / "a b.nc")


@pytest.mark.parametrize("url", ["a.nc", "../b/a.nc", "a%20b.nc", "x/http://odd"])
def test_relative(url):
    assert is_relative(url)


@pytest.mark.parametrize("url", ["/a.nc", "~/a.nc", "file:///a.nc", "file:a.nc", *REMOTE_URLS])
def test_not_relative(url):
    assert not is_relative(url)


@pytest.mark.parametrize(
    ("base", "relative", "joined"),
    [
        ("/data/refs", "a.nc", "/data/refs/a.nc"),
        ("/data/refs/", "../a b.nc", "/data/a b.nc"),
        ("refs", "a.nc", "refs/a.nc"),
        ("file:///data/my%20refs", "a%20b.nc", "/data/my refs/a%20b.nc"),
        ("https://host/data", "a.nc", "https://host/data/a.nc"),
        ("https://host/data/", "../x/a%20b.nc", "https://host/x/a%20b.nc"),
        ("https://host", "../../a.nc", "https://host/a.nc"),
        ("https://host/data?sig=1", "a.nc", "https://host/data/a.nc?sig=1"),
        ("s3://bucket/refs", "../a.nc", "s3://bucket/a.nc"),
        ("s3://bucket", "a.nc", "s3://bucket/a.nc"),
        ("s3://bucket/x//y", "a//b.nc", "s3://bucket/x//y/a//b.nc"),
        ("memory://refs", "a.nc", "memory://refs/a.nc"),
        ("simplecache::https://host/data", "a.nc", "simplecache::https://host/data/a.nc"),
        ("zip://inside::https://host/a.zip", "a.nc", "zip://inside/a.nc::https://host/a.zip"),
        ("simplecache::/data", "a.nc", "simplecache::/data/a.nc"),
    ],
)
def test_join(base, relative, joined):
    assert join(base, relative) == joined
