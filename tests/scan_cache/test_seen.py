"""When an identity is enough to know a source by."""

import pytest

from virtualzarr_refs.scan_cache.seen import Seen
from virtualzarr_refs.sources import SourceIdentity

NOW = 1_700_000_000.5


class Stub:
    """A source of which only the identity is asked for."""

    def __init__(self, url, **identity):
        self.url = url
        self._identity = SourceIdentity(2 << 20, **identity)

    def identity(self):
        return self._identity


@pytest.mark.parametrize(
    ("url", "identity", "is_sure"),
    [
        ("/a.nc", {"last_modified": NOW - 1}, True),
        ("/a.nc", {"last_modified": NOW - 0.001}, False),
        ("/a.nc", {"last_modified": NOW + 100}, False),
        ("/a.nc", {"last_modified": NOW - 1.5}, False),  # in whole seconds
        ("/a.nc", {"last_modified": NOW - 2.5}, True),
        ("s3://b/a.nc", {"etag": "x", "last_modified": NOW}, True),
        ("https://b/a.nc", {"etag": "x", "last_modified": NOW}, False),
        ("https://b/a.nc", {"etag": "x"}, True),
        ("https://b/a.nc", {}, False),
    ],
)
def test_sure(url, identity, is_sure, monkeypatch):
    monkeypatch.setattr("time.time", lambda: NOW)
    seen = Seen.at(Stub(url, **identity))
    assert seen.is_sure is is_sure
    assert seen.is_still(Stub(url, **identity)) is is_sure
    assert not seen.is_still(Stub(url))  # an identity of the size alone
