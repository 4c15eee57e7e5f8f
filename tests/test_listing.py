from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from virtualzarr_refs.chunk_grid import ChunkKeyEncoding, RegularGrid
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.listing import Entry, entries, is_folder, keys
from virtualzarr_refs.manifest import InlineChunk, Manifest
from virtualzarr_refs.metadata import ArrayMetadata

names = st.sampled_from(["a", "b", "c", "0", "1", "ab"])


def array(grid_shape, manifest, encoding=None):
    grid = RegularGrid(grid_shape, (1,) * len(grid_shape))
    metadata = ArrayMetadata("uint8", grid, 0, ({"name": "bytes"},), chunk_key_encoding=encoding or ChunkKeyEncoding())
    return VirtualArray(metadata, manifest)


@st.composite
def arrays(draw):
    grid_shape = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 11]), max_size=3)))
    there = draw(st.sets(st.sampled_from([*product(*map(range, grid_shape))] or [None]), max_size=5)) - {None}
    encoding = draw(st.builds(ChunkKeyEncoding, st.sampled_from(["default", "v2"]), st.sampled_from("/.")))
    return array(grid_shape, Manifest.from_chunks(grid_shape, dict.fromkeys(there, InlineChunk(b"x"))), encoding)


@st.composite
def groups(draw, depth=2):
    found = draw(st.dictionaries(names, arrays(), max_size=2))
    inner = draw(st.dictionaries(names, groups(depth - 1), max_size=2)) if depth else {}
    return VirtualGroup(arrays=found, groups={name: g for name, g in inner.items() if name not in found})


def folders(all_keys):
    return {key[:i] for key in all_keys for i, character in enumerate(key) if character == "/"} | {""}


@given(groups())
def test_folders_hold_what_the_keys_say(group):
    all_keys = list(group.keys())
    for folder in folders(all_keys):
        beneath = f"{folder}/" if folder else ""
        rest = [key.removeprefix(beneath) for key in all_keys if key.startswith(beneath)]
        expected = {Entry(key.partition("/")[0], "/" in key) for key in rest}
        found = list(entries(group, folder))
        assert len(found) == len(expected)
        assert set(found) == expected
        assert is_folder(group, folder)


@given(groups(), st.text("abc01/.zr", max_size=6))
def test_what_is_no_folder_is_empty(group, path):
    assert is_folder(group, path) == (path in folders(group.keys()))


@given(groups(), st.text("abc01/.zr", max_size=4))
def test_keys_by_prefix(group, prefix):
    expected = sorted(key for key in group.keys() if key.startswith(prefix.removeprefix("/")))  # noqa: SIM118
    assert sorted(keys(group, prefix)) == (expected if not prefix.startswith("//") else [])


@given(groups())
def test_all_keys(group):
    assert sorted(keys(group)) == sorted(group.keys())
    for key in list(group.keys())[:20]:
        assert key in set(keys(group, key))
        assert sorted(keys(group, key[:-1])) == sorted(k for k in group.keys() if k.startswith(key[:-1]))  # noqa: SIM118


def test_the_metadata_comes_first_and_chunks_in_the_order_of_the_grid():
    chunks = {(i,): InlineChunk(b"") for i in (11, 2, 0)}
    group = VirtualGroup(arrays={"a": array((12,), Manifest.from_chunks((12,), chunks))}, groups={"g": VirtualGroup()})
    assert [entry.name for entry in entries(group, "")] == ["zarr.json", "a", "g"]
    assert [entry.name for entry in entries(group, "a")] == ["zarr.json", "c"]
    assert [entry.name for entry in entries(group, "a/c")] == ["0", "2", "11"]


@pytest.mark.parametrize("constant", [True, False])
def test_a_large_array_is_not_spelled_out(constant):
    """Spelling out 10^7 chunks takes many seconds and a gigabyte."""
    grid_shape = (10, 1000, 1000)
    make = np.broadcast_to if constant else lambda value, shape: np.full(shape, value)
    columns = [make(kind(0), grid_shape) for kind in (np.uint32, np.uint64, np.uint64)]
    group = VirtualGroup(arrays={"a": array(grid_shape, Manifest(("f",), *columns))})
    with patch.object(Manifest, "indexes", side_effect=AssertionError):
        assert [entry.name for entry in entries(group, "a")] == ["zarr.json", "c"]
        assert len(list(entries(group, "a/c"))) == 10
        assert len(list(entries(group, "a/c/3"))) == 1000
        assert len(list(entries(group, "a/c/3/7"))) == 1000
    with patch.object(Manifest, "indexes", autospec=True, side_effect=Manifest.indexes) as indexes:
        assert len(list(keys(group, "a/c/3/7/99"))) == 11
        assert next(keys(group, "a/c/3/7")) == "a/c/3/7/0"
    assert [call.args[1] for call in indexes.call_args_list] == [(3, 7)]
