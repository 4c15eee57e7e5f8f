import itertools

import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from zarr.core.metadata.v3 import ArrayV3Metadata

from virtualzarr_refs.chunk_grid import (
    ChunkKeyEncoding,
    RectilinearGrid,
    RegularGrid,
    chunk_count,
    parse_chunk_grid,
    parse_chunk_key_encoding,
)
from virtualzarr_refs.errors import ReferenceSetError

ENCODINGS = [ChunkKeyEncoding(name, separator) for name in ("default", "v2") for separator in "/."]

lengths = st.integers(1, 9)


@st.composite
def regular_grids(draw):
    rank = draw(st.integers(0, 4))
    shape = draw(st.tuples(*[st.integers(0, 30)] * rank))
    return RegularGrid(shape, draw(st.tuples(*[lengths] * rank)))


@st.composite
def rectilinear_grids(draw):
    edges = draw(st.lists(lengths | st.lists(lengths, min_size=1, max_size=8).map(tuple), max_size=3))
    # The last chunk that is listed contributes something; zarr does not count those that do not.
    shape = [draw(st.integers(1, 30) if isinstance(e, int) else st.integers(sum(e[:-1]) + 1, sum(e))) for e in edges]
    return RectilinearGrid(tuple(shape), tuple(edges))


grids = regular_grids() | rectilinear_grids()


def indexes(grid):
    return itertools.product(*map(range, grid.grid_shape))


@given(grids)
def test_chunks_cover_the_array_exactly(grid):
    for axis, size in enumerate(grid.shape):
        parts = grid.chunk_lengths(axis)
        assert sum(parts) == size
        assert len(parts) == grid.grid_shape[axis]


@given(grids)
def test_a_chunk_decodes_to_at_least_what_it_contributes(grid):
    for index in itertools.islice(indexes(grid), 100):
        contributed = [grid.chunk_lengths(axis)[i] for axis, i in enumerate(index)]
        assert all(encoded >= part for encoded, part in zip(grid.encoded_shape(index), contributed, strict=True))


@given(grids)
def test_json_round_trip(grid):
    again = parse_chunk_grid(grid.to_json(), grid.shape)
    assert again.grid_shape == grid.grid_shape
    assert all(again.encoded_shape(i) == grid.encoded_shape(i) for i in itertools.islice(indexes(grid), 50))
    assert again == grid


@given(grids.filter(lambda grid: grid.shape and all(grid.shape)))
def test_zarr_understands_the_same(grid):
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": grid.shape,
        "data_type": "uint8",
        "chunk_grid": grid.to_json(),
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes"}],
    }
    array = zarr.Array.from_dict(zarr.storage.StorePath(zarr.storage.MemoryStore()), document)
    assert isinstance(array.metadata, ArrayV3Metadata)
    assert array.cdata_shape == grid.grid_shape


def test_runs_are_counted():
    grid = RectilinearGrid((31 + 28 + 31 + 30, 8), ((31, 28, 31, 30), 4))
    assert grid.to_json()["configuration"] == {"kind": "inline", "chunk_shapes": [[31, 28, 31, 30], 4]}
    grid = RectilinearGrid((70,), ((10, 10, 10, 20, 20),))
    assert grid.to_json()["configuration"]["chunk_shapes"] == [[[10, 3], [20, 2]]]


def test_the_earlier_name_of_rectilinear_grids():
    member = {"name": "rectangular", "configuration": {"chunk_shape": [[1, 2], 3]}}
    assert parse_chunk_grid(member, (3, 7)) == RectilinearGrid((3, 7), ((1, 2), 3))


@pytest.mark.parametrize(
    ("shape", "chunk_shape"), [((3,), (0,)), ((3,), (-1,)), ((-1,), (1,)), ((3, 3), (1,)), ((), (1,))]
)
def test_regular_grids_check_themselves(shape, chunk_shape):
    with pytest.raises(ValueError, match=r"rank|positive|negative"):
        RegularGrid(shape, chunk_shape)


@pytest.mark.parametrize(
    ("shape", "edges"),
    [((3,), (0,)), ((3,), ((1, 1),)), ((3,), ((2, -1, 2),)), ((-1,), (1,)), ((3, 3), (1,)), ((3,), ((),))],
)
def test_rectilinear_grids_check_themselves(shape, edges):
    with pytest.raises(ValueError, match=r"rank|positive|negative|cover"):
        RectilinearGrid(shape, edges)


@pytest.mark.parametrize("grid", [RegularGrid((5, 3), (2, 2)), RectilinearGrid((5, 3), ((3, 2, 1), 2))])
@pytest.mark.parametrize("index", [(3, 0), (0, 2), (-1, 0), (0,), (0, 0, 0)])
def test_chunks_outside_the_grid(grid, index):
    with pytest.raises(IndexError):
        grid.encoded_shape(index)


@pytest.mark.parametrize(
    "member",
    [
        None,
        5,
        "regular",
        {"name": "regular"},
        {"name": "hexagonal", "configuration": {}},
        {"name": ["regular"], "configuration": {}},
        {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        {"name": "regular", "configuration": {"chunk_shape": [0]}},
        {"name": "regular", "configuration": {"chunk_shape": [2.5]}},
        {"name": "regular", "configuration": {"chunk_shape": [True]}},
        {"name": "regular", "configuration": {"chunk_shape": ["2"]}},
        {"name": "regular", "configuration": {"chunk_shape": 2}},
        {"name": "rectilinear", "configuration": {"kind": "remote", "chunk_shapes": [[10]]}},
        {"name": "rectilinear", "configuration": {"kind": "inline"}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [2.5]}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [True]}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": ["5"]}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [[4, 5]]}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [[[2.5, 4]]]}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [[[5, 2.0]]]}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [[[5, 0], 10]]}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [[[5, -2], 20]]}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [[[5]]]}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [[[1, 10**12]]]}},
        {"name": "rectilinear", "configuration": {"chunk_shapes": [[[1, 10**8], [1, 10**8]]]}},
    ],
    ids=str,
)
def test_grids_that_cannot_be_read(member):
    with pytest.raises(ReferenceSetError):
        parse_chunk_grid(member, (10,))


@given(st.sampled_from(ENCODINGS), st.lists(st.integers(0, 10**12), max_size=5).map(tuple))
def test_keys_round_trip(encoding, index):
    assert encoding.decode(encoding.encode(index), len(index)) == index


@given(st.sampled_from(ENCODINGS), st.integers(0, 3), st.text("c0123/.-+ _", max_size=8))
def test_only_what_is_encoded_is_decoded(encoding, rank, key):
    index = encoding.decode(key, rank)
    assert index is None or (len(index) == rank and encoding.encode(index) == key)


@pytest.mark.parametrize(
    "key", ["c/01", "c/", "c", "c/1/", "/c/1", "c/-1", "c/+1", "c/1_0", "c/٣", "c/1\n", "1", "c.1", ""]
)
def test_keys_of_no_chunk(key):
    assert ChunkKeyEncoding().decode(key, 1) is None


def test_keys_of_a_scalar():
    assert [encoding.encode(()) for encoding in ENCODINGS] == ["c", "c", "0", "0"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings_round_trip(encoding):
    assert parse_chunk_key_encoding(encoding.to_json()) == encoding


def test_encodings_have_defaults():
    assert parse_chunk_key_encoding({"name": "default"}) == ChunkKeyEncoding("default", "/")
    assert parse_chunk_key_encoding({"name": "v2", "configuration": {}}) == ChunkKeyEncoding("v2", ".")
    assert parse_chunk_key_encoding("v2") == ChunkKeyEncoding("v2", ".")


@pytest.mark.parametrize(
    "member",
    [
        None,
        7,
        "suffix",
        {"name": []},
        {"name": {}},
        {"configuration": {}},
        {"name": "default", "configuration": {"separator": "-"}},
        {"name": "default", "configuration": {"separator": None}},
        {"name": "default", "configuration": {"separator": []}},
    ],
    ids=str,
)
def test_encodings_that_are_not_known(member):
    with pytest.raises(ReferenceSetError):
        parse_chunk_key_encoding(member)


def test_number_of_chunks():
    assert chunk_count(()) == 1
    assert chunk_count((3, 0)) == 0
    assert chunk_count((3, 4)) == 12
