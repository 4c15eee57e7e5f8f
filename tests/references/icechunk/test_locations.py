import pytest

from virtualzarr_refs.errors import NotRepresentableError, ReferenceSetError
from virtualzarr_refs.references.icechunk.locations import containers, location_of, uncovered, url_of


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("/data/a b%20c#d?e.nc", "file:///data/a%20b%2520c%23d%3Fe.nc"),
        ("/data/ü.nc", "file:///data/%C3%BC.nc"),
        ("s3://bucket/a b/c?d#e%2F.nc", "s3://bucket/a%20b/c%3Fd%23e%252F.nc"),
        ("s3://bucket/a//b/../c.nc", "s3://bucket/a//b/../c.nc"),
        ("gs://bucket/t=1/x.nc", "gs://bucket/t=1/x.nc"),
        ("https://example.org/a%20b.nc", "https://example.org/a%20b.nc"),
    ],
)
def test_a_location_stands_for_its_url(url, location):
    assert location_of(url) == location
    assert url_of(location) == url


def test_other_spellings_of_a_url_get_one_location():
    assert location_of("file:///data/a%20b.nc") == location_of("/data/a b.nc")
    assert location_of("s3a://bucket/a.nc") == "s3://bucket/a.nc"


@pytest.mark.parametrize(
    "url", ["memory://a.nc", "simplecache::https://h/a.nc", "https://h/a.nc?x=1", "https://h/a#b", "zip://a::/b.zip"]
)
def test_what_icechunk_cannot_point_to_is_refused_by_name(url):
    with pytest.raises(NotRepresentableError, match="Icechunk cannot point to"):
        location_of(url)


@pytest.mark.parametrize("location", ["/data/a.nc", "https://h/a?b", "s3://b/a#c", ""])
def test_a_location_that_is_no_plain_url_is_refused(location):
    with pytest.raises(ReferenceSetError, match="not a plain url"):
        url_of(location)


def test_there_is_a_container_for_each_bucket_and_one_for_local_files():
    locations = [location_of(url) for url in ("/d/x y/a.nc", "/d/b.nc", "s3://one/a", "s3://one/b", "s3://two/a")]
    prefixes = [container.url_prefix for container in containers(locations, {"anon": True, "key": "SECRET"})]
    assert prefixes == ["file:///d/", "s3://one/", "s3://two/"]
    assert uncovered(locations, prefixes) == []
    assert uncovered([*locations, "s3://three/a"], prefixes) == ["s3://three/a"]


def test_no_credentials_are_kept_in_a_container():
    options = {"key": "SECRET", "secret": "SECRET", "endpoint_url": "http://localhost:1"}
    assert "SECRET" not in "".join(map(repr, containers(["s3://one/a"], options)))
