"""Every kind of chunk index, compared with what was written: each chunk holds its own number."""

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanners.hdf5.layout import IndexType
from tests.scanners.hdf5.index.indexed import MemorySource, Spec, make, numbers_stored, open_indexed, request_for, rows
from virtualzarr_refs.errors import FormatError

LIBVERS = ["earliest", "v108", "v110", "latest"]


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    rank = draw(st.integers(1, 4))
    lengths = st.integers(1, (40, 12, 6, 4)[rank - 1])
    shape = tuple(draw(lengths) for _ in range(rank))
    chunks = tuple(draw(st.integers(1, min(3, n))) for n in shape)
    limits = tuple(draw(st.sampled_from([n, n + 5, None])) for n in shape)
    count = int(np.prod([-(-n // c) for n, c in zip(shape, chunks, strict=True)]))
    written = draw(st.none() | st.sets(st.integers(0, count - 1), max_size=30))
    return Spec(
        shape,
        chunks,
        limits,
        libver=draw(st.sampled_from(LIBVERS)),
        filtered=draw(st.booleans()),
        written=None if written is None else tuple(written),
        userblock=draw(st.sampled_from([0, 512, 2048])),
        sizes=draw(st.sampled_from([4, 8])),
    )


def check(path, spec: Spec) -> None:
    indexed = open_indexed(path)
    found = numbers_stored(indexed)
    assert found == {number: number for number in spec.numbers}
    assert rows(indexed.read()) == rows(indexed.listed)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=specs())
def test_any_dataset(tmp_path, spec):
    make(tmp_path / "x.h5", spec)
    check(tmp_path / "x.h5", spec)


def sparse(*starts: int) -> tuple[int, ...]:
    return tuple(start + i for start in starts for i in (0, 1, 5))


# Beyond these numbers of chunks libhdf5 begins to use secondary blocks, and data blocks of several pages.
DEEP = sparse(0, 3, 19, 51, 115, 243, 499, 1011, 131_059, 131_060 + 2047, 131_060 + 17 * 2048 + 1022, 262_131, 700_000)

SPARSE = sparse(0, 1023, 70_000, 199_994)

KINDS = {
    "btree1": (IndexType.BTREE1, Spec((6000,), (1,), (None,), "earliest")),
    "btree1, two axes": (IndexType.BTREE1, Spec((90, 70), (1, 2), (None, None), "v108")),
    "btree1, sparse": (
        IndexType.BTREE1,
        Spec((1000, 1000, 1000), (1, 1, 1), None, "v108", written=SPARSE),
    ),
    "single chunk": (IndexType.SINGLE_CHUNK, Spec((3, 4), (3, 4))),
    "implicit": (IndexType.IMPLICIT, Spec((30, 7), (2, 3), early=True)),
    "implicit, may grow": (IndexType.IMPLICIT, Spec((30, 7), (2, 3), (33, 20), early=True)),
    "fixed array": (IndexType.FIXED_ARRAY, Spec((30, 7), (2, 3), (33, 20))),
    "fixed array, paged": (IndexType.FIXED_ARRAY, Spec((70, 90), (1, 2), (70, 100))),
    "fixed array, paged, sparse": (
        IndexType.FIXED_ARRAY,
        Spec((200_000,), (1,), written=SPARSE),
    ),
    "fixed array, full pages": (IndexType.FIXED_ARRAY, Spec((4096,), (1,), written=sparse(1022, 4090))),
    "extensible array": (IndexType.EXTENSIBLE_ARRAY, Spec((3000,), (1,), (None,))),
    "extensible array, deep": (IndexType.EXTENSIBLE_ARRAY, Spec((800_000,), (1,), (None,), written=DEEP)),
    "extensible array, second axis": (IndexType.EXTENSIBLE_ARRAY, Spec((5, 70), (2, 3), (8, None))),
    "extensible array, last axis": (IndexType.EXTENSIBLE_ARRAY, Spec((5, 4, 70), (2, 3, 1), (8, 4, None))),
    "extensible array, deep, last axis": (
        IndexType.EXTENSIBLE_ARRAY,
        Spec((4, 200_000), (2, 1), (4, None), written=DEEP[:-3]),
    ),
    "btree2": (IndexType.BTREE2, Spec((30, 7), (2, 3), (None, None))),
    "btree2, deep": (IndexType.BTREE2, Spec((150, 110), (1, 1), (None, None))),
    "btree2, four axes": (IndexType.BTREE2, Spec((9, 8, 7, 6), (1, 1, 2, 3), (None, 8, 7, None))),
}


def filtered(spec: Spec) -> Spec:
    return Spec(**{**spec.__dict__, "filtered": True})


FILTERED = {f"{name}, filtered": (kind, filtered(spec)) for name, (kind, spec) in KINDS.items() if not spec.early}


@pytest.mark.parametrize(("kind", "spec"), [*KINDS.values(), *FILTERED.values()], ids=[*KINDS, *FILTERED])
def test_kind(tmp_path, kind, spec):
    make(tmp_path / "x.h5", spec)
    indexed = open_indexed(tmp_path / "x.h5")
    assert indexed.layout.index_type is kind
    found = numbers_stored(indexed)
    if spec.early:  # those that were not written are there too
        assert found == {number: number for number in found}
    else:
        assert found == {number: number for number in spec.numbers}
    assert rows(indexed.read()) == rows(indexed.listed)


@pytest.mark.parametrize(
    ("name", "most"), [("btree1", 3), ("btree2, deep", 4), ("fixed array, paged", 3), ("extensible array, deep", 5)]
)
def test_blocks_of_a_level_are_read_at_once(tmp_path, name, most):
    make(tmp_path / "x.h5", KINDS[name][1])
    indexed = open_indexed(tmp_path / "x.h5")
    indexed.read()
    assert len(indexed.source.calls) <= most


@pytest.mark.parametrize("libver", LIBVERS)
def test_nothing_written(tmp_path, libver):
    make(tmp_path / "x.h5", Spec((30, 7), (2, 3), (None, 7), libver, written=()))
    assert not numbers_stored(open_indexed(tmp_path / "x.h5"))


@pytest.mark.parametrize("libver", LIBVERS)
@pytest.mark.parametrize("limits", [(30, 7), (None, 7), (30, None), (None, None)], ids=str)
def test_a_dataset_that_shrank_and_grew(tmp_path, libver, limits):
    make(tmp_path / "x.h5", Spec((30, 7), (2, 3), limits, libver))
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        file["x"].resize((9, 4))
    check_against_libhdf5(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        file["x"].resize((21, 7))
        file["x"][15:17, 3:] = 1
    check_against_libhdf5(tmp_path / "x.h5")


def check_against_libhdf5(path) -> None:
    indexed = open_indexed(path)
    assert rows(indexed.read()) == rows(indexed.listed)


def test_a_grid_of_another_shape_is_refused(tmp_path):
    make(tmp_path / "x.h5", Spec((30, 7), (2, 3)))
    make(tmp_path / "y.h5", Spec((30, 7), (3, 2)))
    source = MemorySource((tmp_path / "y.h5").read_bytes())
    with h5py.File(tmp_path / "y.h5") as file:
        other = request_for(file["x"], source)
    indexed = open_indexed(tmp_path / "x.h5")
    mixed = type(other)(**{**{n: getattr(other, n) for n in other.__slots__}, "grid": indexed.request.grid})
    with pytest.raises(FormatError, match="another shape"):
        type(indexed)(source, mixed, indexed.listed).read()
