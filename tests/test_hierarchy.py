import json
import pickle
import struct

import numpy as np
import pytest

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import RegularGrid
from virtualzarr_refs.errors import NodeNotFoundError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup, is_node_name
from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata, Skipped


def array(chunks, variant=None, shape=(4,), attributes=None):
    manifest = Manifest.from_chunks((2,), chunks)
    if variant is not None:
        variant = np.array(variant, np.uint16)
    metadata = ArrayMetadata("uint8", RegularGrid(shape, (2,)), 0, ({"name": "bytes"},), attributes or {})
    return VirtualArray(
        metadata, Manifest(manifest.urls, manifest.url_id, manifest.offset, manifest.length, variant, manifest.inline)
    )


HERE = VirtualChunk("a.nc", ByteRange(8, 2))


def sample(attributes=None):
    leaf = array({(0,): HERE, (1,): InlineChunk(b"xy")}, attributes=attributes)
    other = array({(1,): VirtualChunk("b.nc", ByteRange(0, 2))})
    deep = VirtualGroup(GroupMetadata({"depth": 2}), {"other": other})
    metadata = GroupMetadata({"title": "t"}, skipped=(Skipped("/x", "odd"),))
    return VirtualGroup(metadata, {"leaf": leaf}, {"in": VirtualGroup(groups={"deep": deep})})


def test_keys_become_values():
    group = sample()
    assert group.resolve("leaf/c/0").parts == (HERE,)
    assert group.resolve("leaf/c/1").parts == (b"xy",)
    assert group.resolve("in/deep/other/c/1").length == 2
    assert group.resolve("in/deep/other/c/0") is None
    for key, node in (("zarr.json", group), ("in/deep/zarr.json", group["in/deep"]), ("leaf/zarr.json", group["leaf"])):
        assert json.loads(group.resolve(key).parts[0]) == node.metadata.to_json()


@pytest.mark.parametrize(
    "key", ["", "/", "leaf", "leaf/", "in", "in/deep", "nowhere/zarr.json", "leaf/c/2", "/zarr.json"]
)
def test_other_keys_stand_for_nothing(key):
    assert sample().resolve(key) is None


def test_variants_stand_before_the_bytes():
    mixed = array({(0,): HERE, (1,): InlineChunk(b"xy")}, variant=[0, 300])
    assert mixed.resolve("c/0").parts == (b"\0\0", HERE)
    assert mixed.resolve("c/1").parts == (struct.pack("<H", 300), b"xy")
    assert mixed.resolve("c/1").length == 4


def test_every_key_that_is_listed_stands_for_something():
    group = sample()
    keys = list(group.keys())
    assert len(keys) == len(set(keys))
    assert all(group.resolve(key) for key in keys)
    assert set(keys) == {
        "zarr.json", "leaf/zarr.json", "leaf/c/0", "leaf/c/1", "in/zarr.json", "in/deep/zarr.json",
        "in/deep/other/zarr.json", "in/deep/other/c/1",
    }  # fmt: skip


def test_nodes_by_path():
    group = sample()
    assert group[""] is group
    assert group["in/deep"].attributes == {"depth": 2}
    assert group["/in//deep/other/"] is group["in"].groups["deep"].arrays["other"]
    for path in ("nowhere", "in/nowhere", "leaf/c", "leaf/leaf"):
        with pytest.raises(NodeNotFoundError) as caught:
            group[path]
        assert caught.value.node == path


def test_walks():
    group = sample()
    assert [path for path, _ in group.walk()] == ["", "leaf", "in", "in/deep", "in/deep/other"]
    assert [path for path, _ in group.walk_arrays()] == ["leaf", "in/deep/other"]
    assert group.urls == ("a.nc", "b.nc")
    assert [s.path for s in group.skipped] == ["/x"]


def test_mapped_arrays():
    seen = []

    def change(path, node):
        seen.append(path)
        return VirtualArray(node.metadata, node.manifest.rename_urls(str.upper))

    changed = sample().map_arrays(change)
    assert seen == ["leaf", "in/deep/other"]
    assert changed.urls == ("A.NC", "B.NC")
    assert changed.attributes == {"title": "t"}
    assert changed["in/deep"].attributes == {"depth": 2}


def test_equality():
    assert sample().equals(sample())
    assert pickle.loads(pickle.dumps(sample())).equals(sample())
    assert not sample().equals(sample({"units": "m"}))
    assert not sample().equals(VirtualGroup())
    assert not sample().equals(
        sample().map_arrays(lambda _, a: VirtualArray(a.metadata, a.manifest.rename_urls(str.upper)))
    )
    assert not VirtualGroup(groups={"x": VirtualGroup()}).equals(VirtualGroup(arrays={"x": array({})}))


@pytest.mark.parametrize("name", ["", ".", "..", "...", "a/b", "a\\b", "zarr.json"])
def test_names_that_cannot_be(name):
    assert not is_node_name(name)
    with pytest.raises(ValueError, match="name of a Zarr node"):
        VirtualGroup(groups={name: VirtualGroup()})


@pytest.mark.parametrize("name", ["a", "c", "a b", ".a", "grün", "a*[1]?", "__x", "-"])
def test_names_that_can_be(name):
    assert VirtualGroup(groups={name: VirtualGroup()}).resolve(f"{name}/zarr.json")


def test_names_are_used_once():
    with pytest.raises(ValueError, match="share"):
        VirtualGroup(arrays={"a": array({})}, groups={"a": VirtualGroup()})


def test_manifests_cover_their_grid():
    with pytest.raises(ValueError, match="cover"):
        array({}, shape=(5,))


def test_reprs_show_neither_bytes_nor_urls():
    secret = array(
        {(0,): VirtualChunk("https://user:secret@host/f", ByteRange(0, 1)), (1,): InlineChunk(b"bytes" * 99)}
    )
    group = VirtualGroup(arrays={"a": secret}, groups={"g": VirtualGroup()})
    assert repr(group) == "VirtualGroup(arrays=['a'], groups=['g'])"
    assert repr(secret) == "VirtualArray(uint8 (4,), Manifest(grid_shape=(2,), 1 urls, 1 inline chunks))"
