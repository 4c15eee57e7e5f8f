import pickle

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.inner_chunks import ABSENT, InnerChunks
from virtualzarr_refs.value import Gather, StoredValue

SOURCE = bytes(range(256)) * 4


def chunks_of(pairs):
    offset = np.array([ABSENT if pair is None else pair[0] for pair in pairs], np.uint64)
    length = np.array([ABSENT if pair is None else pair[1] for pair in pairs], np.uint64)
    return InnerChunks(offset, length)


def content(parts):
    return b"".join(SOURCE[part.byte_range.offset : part.byte_range.stop] for part in parts)


pairs = st.lists(st.none() | st.tuples(st.integers(0, 500), st.integers(0, 90)), max_size=12)


@given(pairs, st.booleans(), st.booleans())
@settings(max_examples=50)
def test_the_index_finds_every_chunk_in_the_value(pairs, is_first, has_checksum):
    inner = chunks_of(pairs)
    index = inner.index(is_first=is_first, has_checksum=has_checksum)
    gather = Gather("source", inner.layout.offset, inner.layout.ends)
    data = content(StoredValue((gather,)).flat())
    whole = index + data if is_first else data + index
    if has_checksum:
        assert google_crc32c.value(index[:-4]).to_bytes(4, "little") == index[-4:]
    found = np.frombuffer(index, "<u8", 2 * len(pairs)).reshape(-1, 2).tolist()
    for pair, (offset, length) in zip(pairs, found, strict=True):
        if pair is None:
            assert offset == length == ABSENT
        else:
            assert whole[offset : offset + length] == SOURCE[pair[0] : pair[0] + pair[1]]


@given(pairs)
@settings(max_examples=50)
def test_the_value_holds_nothing_but_chunks(pairs):
    inner = chunks_of(pairs)
    present = [pair for pair in pairs if pair is not None]
    assert inner.nbytes == inner.layout.length == sum(length for _, length in present)
    if present:
        start = min(offset for offset, _ in present)
        assert inner.span == ByteRange(start, max(offset + length for offset, length in present) - start)


@given(pairs, st.integers(0, 600), st.integers(0, 600))
@settings(max_examples=50)
def test_gathers_are_sliced_as_bytes_are(pairs, start, stop):
    layout = chunks_of(pairs).layout
    value = StoredValue((Gather("source", layout.offset, layout.ends),))
    assert content(value.slice(start, stop).flat()) == content(value.flat())[start:stop]


def test_neighbours_are_one_range():
    layout = chunks_of([(30, 10), (10, 20), None, (50, 5)]).layout
    assert layout.offset.tolist() == [10, 50]
    assert layout.ends.tolist() == [30, 35]


@given(pairs)
@settings(max_examples=20)
def test_bytes_and_pickles_give_the_same_chunks(pairs):
    inner = chunks_of(pairs)
    inner.index(is_first=False, has_checksum=True)
    assert InnerChunks.from_bytes(inner.to_bytes()).equals(inner)
    assert pickle.loads(pickle.dumps(inner)).equals(inner)


@pytest.mark.parametrize(
    ("offset", "length"),
    [([1, 2], [1]), ([1 << 62], [1]), ([1], [ABSENT]), ([ABSENT], [1]), ([0] * 4, [1 << 61] * 4)],
)
def test_impossible_chunks_are_refused(offset, length):
    with pytest.raises(ValueError, match=r"columns|inner chunk"):
        InnerChunks(np.array(offset, np.uint64), np.array(length, np.uint64))
