"""Layout messages, byte by byte as the specification has them."""

import struct

import pytest

from scanners.hdf5.layout import IndexType, parse_chunked_layout
from virtualzarr_refs.errors import FormatError

OLD = struct.pack("<BBBB4xQIII", 2, 3, 2, 0, 96, 5, 6, 4)
VERSION_3 = struct.pack("<BBBQIII", 3, 2, 3, 96, 5, 6, 4)
SINGLE = struct.pack("<BBBBBHHHBQIQ", 4, 2, 3, 3, 2, 5, 6, 4, 1, 77, 5, 96)
FIXED = struct.pack("<BBBBBBBBBBQ", 4, 2, 0, 3, 1, 5, 6, 4, 3, 10, 96)
EXTENSIBLE = struct.pack("<BBBBBBBBB5BQ", 5, 2, 0, 3, 1, 5, 6, 4, 4, 32, 4, 16, 4, 10, 96)
BTREE2 = struct.pack("<BBBBBBBBBIBBQ", 4, 2, 0, 3, 1, 5, 6, 4, 5, 2048, 100, 40, 96)
IMPLICIT = struct.pack("<BBBBBBBBBQ", 4, 2, 0, 3, 1, 5, 6, 4, 2, 96)

MESSAGES = {
    IndexType.BTREE1: VERSION_3,
    IndexType.SINGLE_CHUNK: SINGLE,
    IndexType.IMPLICIT: IMPLICIT,
    IndexType.FIXED_ARRAY: FIXED,
    IndexType.EXTENSIBLE_ARRAY: EXTENSIBLE,
    IndexType.BTREE2: BTREE2,
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_every_kind_of_index(kind):
    layout = parse_chunked_layout(MESSAGES[kind], 8, 8)
    assert (layout.index_type, layout.chunk_shape, layout.element_size, layout.address) == (kind, (5, 6), 4, 96)


def test_the_oldest_form():
    layout = parse_chunked_layout(OLD, 8, 8)
    assert (layout.version, layout.index_type, layout.chunk_shape, layout.address) == (2, 0, (5, 6), 96)


def test_flags():
    layout = parse_chunked_layout(SINGLE, 8, 8)
    assert (layout.skips_filters_at_edges, layout.single_size, layout.single_mask) == (True, 77, 5)
    assert parse_chunked_layout(FIXED, 8, 8).single_size is None


@pytest.mark.parametrize("kind", MESSAGES)
def test_cut_short(kind):
    for length in range(len(MESSAGES[kind])):
        with pytest.raises(FormatError):
            parse_chunked_layout(MESSAGES[kind][:length], 8, 8)


@pytest.mark.parametrize("message", [b"\x06\x02" + bytes(40), b"\x03\x01" + bytes(40), FIXED[:8] + b"\x09" + bytes(20)])
def test_unknown(message):
    with pytest.raises(FormatError):
        parse_chunked_layout(message, 8, 8)
