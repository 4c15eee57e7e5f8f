"""Damaged indexes: refused, or read as libhdf5 reads them. Never other values, other exceptions or a hang."""

import io
from dataclasses import replace

import h5py
import numpy as np
import pytest
from numcodecs.checksum32 import jenkins_lookup3

from scanners.hdf5.index import IndexFile, read_index
from tests.scanners.hdf5.index.indexed import Indexed, MemorySource, Spec, list_chunks, make, open_indexed, rows
from virtualzarr_refs.errors import FormatError

SMALL = {
    "btree1": Spec((9, 9), (1, 1), (None, 9), "earliest"),
    "btree1, filtered": Spec((70,), (1,), None, "v108", filtered=True),
    "fixed array": Spec((9, 9), (1, 1), (9, 9)),
    "fixed array, filtered": Spec((9, 9), (1, 1), (9, 9), filtered=True, userblock=512),
    "fixed array, paged": Spec((2100,), (1,), written=(0, 1023, 2099)),
    "extensible array": Spec((300,), (1,), (None,)),
    "extensible array, filtered": Spec((9, 30), (1, 1), (9, None), filtered=True),
    "extensible array, deep": Spec((140_000,), (1,), (None,), written=(3, 80, 133_110)),
    "btree2": Spec((9, 30), (1, 1), (None, None)),
    "btree2, filtered": Spec((9, 9), (1, 1), (None, None), filtered=True),
}


def positions(start: int, stop: int) -> list[int]:
    """Bytes to damage: all of a block's head, and more of the rest at an odd step, so that each field is met."""
    step = max(3, (stop - start) // 60 | 1)
    return sorted({*range(start, min(stop, start + 40)), *range(start, stop, step)})


@pytest.fixture(params=SMALL)
def sane(request, tmp_path) -> Indexed:
    make(tmp_path / "x.h5", SMALL[request.param])
    return open_indexed(tmp_path / "x.h5")


def read_or_none(indexed: Indexed, data: bytes | bytearray) -> list[tuple[int, ...]] | None:
    source = MemorySource(data)
    file = replace(indexed.request.file, source=source)
    try:
        return rows(read_index(replace(indexed.request, file=file)))
    except FormatError:
        return None


def structure(indexed: Indexed) -> list[tuple[int, int]]:
    """First and last byte of every block of the index, in the file."""
    blocks: list[tuple[int, int]] = []
    read = IndexFile.read

    def recording(file, groups):
        groups = list(groups)
        for addresses, length in groups:
            blocks.extend((file.base + int(address), file.base + int(address) + length) for address in addresses)
        return read(file, groups)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IndexFile, "read", recording)
        indexed.read()
    return blocks


def listed_by_libhdf5(indexed: Indexed, data: bytes) -> list[tuple[int, ...]] | None:
    try:
        with h5py.File(io.BytesIO(data)) as file:
            return rows(list_chunks(file["x"], indexed.request))
    except (OSError, RuntimeError, KeyError, ValueError, FormatError):
        return None


def test_a_flipped_bit(sane):
    expected = rows(sane.read())
    rng = np.random.default_rng(0)
    refused = 0
    for start, stop in structure(sane)[:12]:
        for position in positions(start, stop):
            damaged = bytearray(sane.source.data)
            damaged[position] ^= 1 << int(rng.integers(8))
            found = read_or_none(sane, damaged)
            refused += found is None
            if found is not None and found != expected:
                assert found == listed_by_libhdf5(sane, bytes(damaged))
    assert refused


def test_a_damaged_field_under_a_right_checksum(sane):
    """Nothing but our errors, whatever a block says."""
    for start, stop in structure(sane)[:8]:
        for position in positions(start, stop - 4):
            for value in (0, 1, 0xFF):
                damaged = bytearray(sane.source.data)
                damaged[position] = value
                sign(damaged, start, stop)
                read_or_none(sane, damaged)


def sign(data: bytearray, start: int, stop: int) -> None:
    data[stop - 4 : stop] = jenkins_lookup3(bytes(data[start : stop - 4])).to_bytes(4, "little")


def test_a_file_cut_short(sane):
    expected = rows(sane.read())
    for length in range(0, len(sane.source.data), 97):
        assert read_or_none(sane, sane.source.data[:length]) in (None, expected)


def test_an_index_anywhere_else(sane):
    """Addresses into the midst of other things, of nothing, and beyond the end."""
    size = len(sane.source.data)
    for address in [*range(0, min(size, 3000), 41), size - 1, size, 2**63, 2**64 - 2]:
        layout = replace(sane.request.layout, address=address)
        if address != sane.layout.address:
            with pytest.raises(FormatError):
                read_index(replace(sane.request, layout=layout))


def test_btree1_that_points_to_itself(tmp_path):
    make(tmp_path / "x.h5", SMALL["btree1"])
    indexed = open_indexed(tmp_path / "x.h5")
    (root, _), *children = structure(indexed)
    first_child = root + 24 + 8 + 8 * 3
    data = bytearray(indexed.source.data)
    assert int.from_bytes(data[first_child : first_child + 8], "little") == children[0][0]
    for target in (root, children[1][0]):
        data[first_child : first_child + 8] = target.to_bytes(8, "little")
        assert read_or_none(indexed, data) is None


def test_btree1_out_of_order(tmp_path):
    make(tmp_path / "x.h5", SMALL["btree1"])
    indexed = open_indexed(tmp_path / "x.h5")
    _, (leaf, _), *_ = structure(indexed)
    entry = 8 + 8 * 3 + 8
    data = bytearray(indexed.source.data)
    first, second = leaf + 24, leaf + 24 + entry
    data[first : first + entry], data[second : second + entry] = (
        data[second : second + entry],
        data[first : first + entry],
    )
    assert read_or_none(indexed, data) is None
