import pytest

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.references.trust import Trust

REMOTE_SETS = ["https://archive.org/a/set.json", "s3://bucket/set.json", "simplecache::https://archive.org/set.json"]


@pytest.mark.parametrize(
    "url", ["/etc/passwd", "file:///etc/passwd", "s3://b/x", "http://127.0.0.1/x", "simplecache::/x"]
)
@pytest.mark.parametrize("place", [None, "/home/me/set.json", "file:///home/me/set.json", "memory://set.json"])
def test_a_local_set_may_point_anywhere(place, url):
    Trust.in_set_at(place, None).require(url)


@pytest.mark.parametrize("place", REMOTE_SETS)
@pytest.mark.parametrize(
    "url",
    [
        "s3://other/x", "https://other.org/x.nc", "gs://b/x y.nc", "simplecache::https://other.org/x.nc",
        "zip://x.nc::s3://other/x.zip", "abfs://container@account/x", "https://8.8.8.8/x", "http://[2606:4700:0:0:0:0:0:1111]/x",
        "s3://localhost/x",
    ],
)  # fmt: skip
def test_a_remote_set_may_point_to_other_archives(place, url):
    Trust.in_set_at(place, None).require(url)


LOCAL_FILES = [
    "/etc/passwd", "file:///etc/passwd", "FILE:///etc/passwd", "file:/etc/passwd", "local:///etc/passwd", "~/.ssh/id",
    "simplecache::file:///etc/passwd", "simplecache::/etc/passwd", "filecache::simplecache::local:///etc/passwd",
    "zip://a::/home/me/a.zip", "tar://x::file:///a.tar", "memory://x", "dir::file:///etc", "reference://x",
    "reference::file:///x.json", "s3://b/x::file:///etc/passwd", "https::file:///etc/passwd", "github://a:b@/x",
    "simplecache::", "::/etc/passwd", "://x", "data:x", "C:\\x", "\\\\server\\x", "generic://x", "jupyter://x",
    "file:///etc/passwd::https://archive.org/x", "arrow_hdfs://x", "smb://server/x", "unknown+https://x",
]  # fmt: skip
INTERNAL = [
    "http://127.0.0.1/x", "http://localhost/x", "http://LOCALHOST:80/x", "http://a.localhost/x", "http://127.1/x",
    "http://2130706433/x", "http://0x7f000001/x", "http://0177.0.0.1/x", "http://10.1.2.3/x", "http://192.168.0.1/x",
    "http://169.254.169.254/latest/meta-data", "http://user@127.0.0.1/x", "http://0.0.0.0/x", "http:///x",
    "http://good.org\\@127.0.0.1/x", "http://127.0.0.1\n/x", "http://x.internal/x", "sftp://10.0.0.1/x",
    "simplecache::http://127.0.0.1/x", "http://[::1]/x", "http://[0:0:0:0:0:0:0:1]/x", "http://[0:0:0:0:0:ffff:7f00:1]/x",
    "http://127.0.0.1./x", "https://[/x", "http:///127.0.0.1/x",
]  # fmt: skip


@pytest.mark.parametrize("place", REMOTE_SETS)
@pytest.mark.parametrize("url", LOCAL_FILES + INTERNAL)
def test_a_remote_set_never_reaches_this_machine_or_a_private_network(place, url):
    with pytest.raises(ReferenceSetError, match="allow="):
        Trust.in_set_at(place, None).require(url)


def test_a_set_on_a_private_host_may_point_to_that_host_and_no_other():
    trust = Trust.in_set_at("http://10.0.0.1:8080/set.json", None)
    trust.require("http://10.0.0.1/x.nc")
    with pytest.raises(ReferenceSetError):
        trust.require("http://10.0.0.2/x.nc")


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("s3://bucket/a/x.nc", True), ("s3://bucket/a", True), ("s3://bucket/ab/x.nc", False), ("s3://other/a", False),
        ("s3://bucket/a/../b", False), ("s3://bucket/a/%2e%2e/b", False), ("simplecache::s3://bucket/a/x", True),
        ("reference::s3://bucket/a/x", False), ("/data/x.nc", True), ("/data/../etc/passwd", False),
        ("file:///data/x.nc", True), ("file:///data/../etc", False), ("/database", False), ("/data", True),
        ("https://good.org.evil.com/x", False), ("https://good.org@evil.com/x", False), ("https://good.org/x", True),
        ("", False), ("s3://bucket/one.nc", True), ("s3://bucket/one.nc2", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [None, "https://archive.org/set.json"])
def test_allow_is_the_whole_rule(place, url, allowed):
    trust = Trust.in_set_at(place, ["s3://bucket/a", "file:///data/", "https://good.org", "s3://bucket/one.nc"])
    if allowed:
        trust.require(url)
    else:
        with pytest.raises(ReferenceSetError, match="allow"):
            trust.require(url)


def test_allow_may_be_one_text_and_may_allow_nothing():
    Trust.in_set_at(None, "s3://bucket").require("s3://bucket/x")
    with pytest.raises(ReferenceSetError):
        Trust.in_set_at(None, []).require("s3://bucket/x")
