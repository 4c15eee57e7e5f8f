import sys

import pytest

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import SourceError, UnsupportedError
from virtualzarr_refs.sources import open_source
from virtualzarr_refs.sources.obstore_source import _split

DATA = bytes(range(256)) * 40


@pytest.mark.parametrize(
    ("url", "root", "key"),
    [
        ("s3://bucket/a/b%20c.nc", "s3://bucket", "a/b%20c.nc"),
        ("gs://bucket/a.nc", "gs://bucket", "a.nc"),
        ("az://container/a.nc", "az://container", "a.nc"),
        (
            "abfs://container@account.dfs.core.windows.net/a/b.nc",
            "abfs://container@account.dfs.core.windows.net",
            "a/b.nc",
        ),
        ("https://host:80/a/b.nc", "https://host:80", "a/b.nc"),
        ("https://host/a%20b.nc", "https://host/a%20b.nc", ""),
        ("https://host/a.nc?sig=1", "https://host/a.nc?sig=1", ""),
        ("https://host/a//b.nc", "https://host/a//b.nc", ""),
        ("https://host/a/../b.nc", "https://host/a/../b.nc", ""),
        ("file:///data/a%20b.nc", "file:///", "data/a b.nc"),
        ("/data/a.nc", "file:///", "data/a.nc"),
    ],
)
def test_root_and_key(url, root, key):
    assert _split(url) == (root, key)


def test_files_of_one_host_share_a_store_and_its_connections(server):
    sources = [open_source(f"{server.url}/{name}", backend="obstore") for name in "ab"]
    other = open_source(f"{server.url}/a", {"client_options": {"timeout": "9s"}}, backend="obstore")
    stores = [source._locate()[0] for source in (*sources, other)]
    assert stores[0] is stores[1]
    assert stores[0] is not stores[2]


def test_options_that_cannot_be_hashed_or_are_unknown():
    source = open_source("s3://bucket/a", {"nonsense": ["x"]}, backend="obstore")
    with pytest.raises((SourceError, TypeError)):
        source.identity()
    source = open_source("s3://bucket/a", {"nonsense": "x"}, backend="obstore")
    with pytest.raises(SourceError, match="nonsense"):
        source.identity()


def test_a_key_that_obstore_cannot_say():
    with pytest.raises(SourceError, match="empty path segment"):
        open_source("s3://bucket/a//b", {"region": "x", "skip_signature": True}, backend="obstore").identity()


def test_unknown_scheme():
    with pytest.raises(UnsupportedError, match='backend="fsspec"'):
        open_source("ftp://host/a", backend="obstore").identity()


def test_a_file_has_no_made_up_etag(tmp_path):
    (tmp_path / "a b%20c.nc").write_bytes(DATA)
    url = tmp_path / "a b%20c.nc"
    identity = open_source(url, backend="obstore").identity()
    assert identity.etag is None
    assert identity.matches(open_source(url).identity())
    assert bytes(open_source(url, backend="obstore").read([ByteRange(1, 2)])[0]) == DATA[1:3]


def test_without_obstore(monkeypatch):
    monkeypatch.delitem(sys.modules, "virtualzarr_refs.sources.obstore_source")
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UnsupportedError, match=r"virtualzarr-refs\[remote\]"):
        open_source("s3://bucket/a", backend="obstore")
