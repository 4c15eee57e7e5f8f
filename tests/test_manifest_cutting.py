"""Columns of byte ranges, cut and joined: every byte keeps its place."""

from __future__ import annotations

import time

import numpy as np
import pytest

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.manifest_cutting import Pieces, join, split


def chunk(offset, length, url="a"):
    return VirtualChunk(url, ByteRange(offset, length))


def pieces(lengths, targets):
    return Pieces.between(np.array(lengths), np.array(targets))


def test_pieces_begin_where_chunks_and_targets_begin():
    found = pieces([4, 4, 4], [3, 3, 4])
    assert found.owner.tolist() == [0, 0, 1, 1, 2]
    assert found.start.tolist() == [0, 3, 0, 2, 0]
    assert found.length.tolist() == [3, 1, 2, 2, 2]


def test_split_moves_offsets():
    manifest = Manifest.from_chunks((2,), {(0,): chunk(100, 16), (1,): InlineChunk(bytes(range(16)))})
    found = split(manifest, 0, pieces([2, 2], [1, 3]), np.array([8]))
    assert [found.chunk((i,)) for i in range(3)] == [chunk(100, 8), chunk(108, 8), InlineChunk(bytes(range(16)))]


def test_join_undoes_split():
    chunks = {(0, 0): chunk(0, 40), (0, 1): chunk(40, 40), (1, 0): InlineChunk(bytes(range(40)))}
    manifest = Manifest.from_chunks((2, 2), chunks)
    cut = split(manifest, 1, pieces([5, 5], [1] * 10), np.array([[8]]))
    assert cut.count == 15
    assert join(cut, 1, np.array([0, 5])).equals(manifest)


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        ({(0,): chunk(0, 4)}, "missing"),
        ({(0,): chunk(0, 4), (1,): chunk(5, 4)}, "between"),
        ({(0,): chunk(0, 4), (1,): chunk(4, 4, "b")}, "lies in b"),
        ({(0,): chunk(0, 4), (1,): InlineChunk(b"1234")}, "inline"),
    ],
)
def test_join_says_why_not(chunks, reason):
    with pytest.raises(UnsupportedError, match=reason):
        join(Manifest.from_chunks((2,), chunks), 0, np.array([0]))


def test_chunks_of_several_variants_stay_apart():
    apart = Manifest.from_chunks((2,), {(0,): chunk(0, 4), (1,): chunk(4, 4)})
    mixed = Manifest(apart.urls, apart.url_id, apart.offset, apart.length, np.array([0, 1], np.uint16))
    with pytest.raises(UnsupportedError, match="different ways"):
        join(mixed, 0, np.array([0]))
    assert join(mixed, 0, np.array([0, 1])).equals(mixed)


def test_a_million_chunks_take_about_as_long_as_copying_them_some_times():
    count = 1_000_000
    offset = np.arange(count, dtype=np.uint64) * 64
    manifest = Manifest(("a",), np.zeros(count, np.uint32), offset, np.full(count, 64, np.uint64))
    started = time.process_time()
    joined = join(manifest, 0, np.arange(0, count, 4))
    again = split(joined, 0, pieces([4] * (count // 4), [1] * count), np.array([64]))
    assert time.process_time() - started < 5
    assert again.equals(manifest)
