import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from virtualzarr_refs.embedding.checksums import patch
from virtualzarr_refs.embedding.plan import room
from virtualzarr_refs.embedding.tail import Index, nest

grids = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


def index_of(grid, seed):
    count = int(np.prod(grid))
    return Index(np.random.default_rng(seed).bytes(16 * count), grid)


@given(st.binary(max_size=40), st.binary(max_size=40), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_four_bytes_give_any_checksum(before, after, wanted):
    assert google_crc32c.value(before + patch(before, after, wanted) + after) == wanted


@given(st.lists(grids, min_size=1, max_size=5))
@settings(max_examples=30)
def test_every_index_ends_where_the_file_does(grids):
    indexes = {str(number): index_of(grid, number) for number, grid in enumerate(grids)}
    tail = nest(indexes)
    for name, index in indexes.items():
        assert tail.spare[name] >= 1
        size = len(index.entries) + tail.spare[name] * index.row
        own = tail.data[-size - 4 :]
        assert len(own) == size + 4
        assert own.startswith(index.entries)
        assert google_crc32c.value(own[:-4]).to_bytes(4, "little") == own[-4:]


@pytest.mark.parametrize(("count", "size"), [(1, 512), (30, 512), (31, 1024), (1000, 16384)])
def test_user_blocks_have_room(count, size):
    assert room(index_of((count,), 0)) == size
