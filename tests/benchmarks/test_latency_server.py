"""The server of the remote benchmarks: what it sends, and what it counts."""

from __future__ import annotations

from benchmarks.latency_server import Counts, serving
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.sources import open_source

DATA = bytes(range(256)) * 40


def test_sends_ranges_and_counts_them(tmp_path):
    (tmp_path / "a").write_bytes(DATA)
    with serving(tmp_path, latency=0) as server:
        source = open_source(f"{server.url}/a")
        assert source.identity().size == len(DATA)
        server.forget()
        pieces = [bytes(view) for view in source.read([ByteRange(5, 10), ByteRange(len(DATA) - 3, 3)])]
        assert pieces == [DATA[5:15], DATA[-3:]]
        assert server.counts() == Counts(1, len(DATA) - 5)  # they lie so near that one request brings both
