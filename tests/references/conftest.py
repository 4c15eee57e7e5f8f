"""Groups built by hand: zarr encodes the chunks, a file gets them one after another, a manifest says where they lie."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core.buffer import default_buffer_prototype

from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Chunk, InlineChunk, Manifest, VirtualChunk
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata, encode_metadata

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


class Builder:
    """Makes arrays whose chunks lie in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = 0

    def array(
        self,
        values: np.ndarray,
        metadata: ArrayMetadata,
        *,
        inline: bool = False,
        missing: Sequence[tuple[int, ...]] = (),
    ) -> VirtualArray:
        """The values as an array with this metadata; its chunks in a file, or else inline."""
        encoded = encode_chunks(values, metadata)
        chunks: dict[tuple[int, ...], Chunk] = {}
        path, position = self.folder / f"data {self.files}.bin", 7
        self.files += 1
        with path.open("wb") as file:
            file.write(b"\xffheader")
            for index, data in encoded.items():
                if index in missing:
                    continue
                chunks[index] = InlineChunk(data) if inline else VirtualChunk(str(path), ByteRange(position, len(data)))
                file.write(data)
                position += len(data)
        return VirtualArray(metadata, Manifest.from_chunks(metadata.chunk_grid.grid_shape, chunks))


def encode_chunks(values: np.ndarray, metadata: ArrayMetadata) -> dict[tuple[int, ...], bytes]:
    """The chunks of an array as zarr encodes them, by index."""
    memory: dict[str, Any] = {"zarr.json": default_buffer_prototype().buffer.from_bytes(encode_metadata(metadata))}
    store = zarr.storage.MemoryStore(memory)
    array = zarr.open_array(store, mode="r+", zarr_format=3).with_config({"write_empty_chunks": True})
    array[...] = values
    rank, encoding = len(metadata.shape), metadata.chunk_key_encoding
    del memory["zarr.json"]
    return {encoding.decode(key, rank) or (): value.to_bytes() for key, value in sorted(memory.items())}


def describe(
    data_type: Any,
    grid: Any,
    *,
    codecs: Sequence[Mapping[str, Any]] = (LITTLE,),
    fill_value: Any = 0,
    attributes: Mapping[str, Any] | None = None,
    names: Sequence[str | None] | None = None,
    **more: Any,
) -> ArrayMetadata:
    """Metadata with the defaults that most tests want."""
    metadata = ArrayMetadata(data_type, grid, fill_value, tuple(map(dict, codecs)), dimension_names=names, **more)
    encoded, types = encode_attributes(attributes or {}, metadata.dtype)
    return ArrayMetadata(
        data_type, grid, fill_value, tuple(map(dict, codecs)), encoded, names, attribute_types=types, **more
    )


def same_group(one: VirtualGroup, other: VirtualGroup) -> None:
    """Assert that two groups hold the same metadata and chunks."""
    nodes, others = dict(one.walk()), dict(other.walk())
    assert list(nodes) == list(others)
    for path, node in nodes.items():
        assert encode_metadata(node.metadata) == encode_metadata(others[path].metadata), path
        if isinstance(node, VirtualArray):
            assert node.manifest.loaded().equals(others[path].manifest.loaded()), path


def read_all(store: Any) -> dict[str, np.ndarray]:
    """The values of every array of a store, by path, as zarr reads them."""
    group = zarr.open_group(store, mode="r")
    return {path: node[...] for path, node in group.members(max_depth=None) if isinstance(node, zarr.Array)}


def same_values(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    """Assert that both hold the same arrays."""
    assert found.keys() == expected.keys()
    for path, values in expected.items():
        np.testing.assert_array_equal(np.asarray(found[path]), np.asarray(values), err_msg=path)


@pytest.fixture
def build(tmp_path):
    folder = tmp_path / "sources"
    folder.mkdir()
    return Builder(folder)


@pytest.fixture
def helpers():
    """The functions of this file: test folders are no packages, so tests cannot import them."""
    return Helpers


class Helpers:
    LITTLE = LITTLE
    describe = staticmethod(describe)
    encode_chunks = staticmethod(encode_chunks)
    read_all = staticmethod(read_all)
    same_group = staticmethod(same_group)
    same_values = staticmethod(same_values)

    @staticmethod
    def group(attributes: Mapping[str, Any] | None = None, **arrays: VirtualArray) -> VirtualGroup:
        encoded, types = encode_attributes(attributes or {})
        return VirtualGroup(GroupMetadata(encoded, types), arrays)

    @staticmethod
    def refs_of(path: Path) -> dict[str, Any]:
        return json.loads(path.read_text())["refs"]
