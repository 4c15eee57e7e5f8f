"""A Zarr hierarchy whose chunks lie in other files."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from virtualzarr_refs.chunk_grid import ChunkIndex, Shape
from virtualzarr_refs.chunk_manifest import ChunkManifest
from virtualzarr_refs.errors import NodeNotFoundError
from virtualzarr_refs.manifest import InlineChunk, Manifest, ShardChunk
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata, Skipped, encode_metadata, same_metadata
from virtualzarr_refs.sharding import ShardCodec, check_shards, shard_value
from virtualzarr_refs.sources.scanned import ScannedSource, Sources
from virtualzarr_refs.value import Part, StoredValue

if TYPE_CHECKING:
    import xarray as xr

    from virtualzarr_refs.store import VirtualStore

METADATA_KEY = "zarr.json"


@dataclass(frozen=True, slots=True, eq=False)
class VirtualArray:
    """An array: its metadata and where its chunks lie.

    Parameters
    ----------
    metadata : ArrayMetadata
        The ``zarr.json``.
    manifest : ChunkManifest
        Over the chunk grid of the metadata.

    Raises
    ------
    ValueError
        If the manifest does not cover the chunk grid, or its shards are not those of the metadata.
    """

    metadata: ArrayMetadata
    manifest: ChunkManifest

    def __post_init__(self) -> None:
        if self.manifest.grid_shape != self.metadata.chunk_grid.grid_shape:
            raise ValueError(
                f"a manifest of {self.manifest.grid_shape} chunks does not cover a grid of "
                f"{self.metadata.chunk_grid.grid_shape}"
            )
        if isinstance(self.manifest, Manifest):
            check_shards(self.metadata, self.manifest.inner_chunks)

    @property
    def shape(self) -> Shape:
        """Shape of the array, in elements."""
        return self.metadata.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of the values; ``object`` for strings of variable length."""
        return self.metadata.dtype

    def resolve(self, key: str) -> StoredValue | None:
        """What a key relative to the array stands for: its metadata, a chunk, or nothing (None)."""
        if key == METADATA_KEY:
            return StoredValue((encode_metadata(self.metadata),))
        index = self.metadata.chunk_key_encoding.decode(key, len(self.shape))
        grid_shape = self.manifest.grid_shape
        if index is None or any(i >= n for i, n in zip(index, grid_shape, strict=True)):
            return None
        chunk = self.manifest.chunk(index)
        if chunk is None:
            return None
        if isinstance(chunk, ShardChunk):
            return shard_value(chunk, ShardCodec.of(self.metadata))
        part: Part = chunk.data if isinstance(chunk, InlineChunk) else chunk
        variant = self.manifest.variant_of(index)
        # DESIGN of the mixed codec: a little-endian number of the variant stands before the source's bytes.
        return StoredValue((part,) if variant is None else (struct.pack("<H", variant), part))

    def chunk_keys(self, prefix: ChunkIndex = ()) -> Iterator[str]:
        """Keys, relative to the array, of the chunks that are there and whose index starts with `prefix`."""
        return map(self.metadata.chunk_key_encoding.encode, self.manifest.indexes(prefix))

    def equals(self, other: VirtualArray) -> bool:
        """Whether both have the same metadata and the same chunks."""
        return same_metadata(self.metadata, other.metadata) and self.manifest.loaded().equals(other.manifest.loaded())

    def __repr__(self) -> str:
        return f"VirtualArray({self.dtype} {self.shape}, {self.manifest})"


@dataclass(frozen=True, slots=True, eq=False)
class VirtualGroup:
    """A group: metadata, arrays and groups.

    Parameters
    ----------
    metadata : GroupMetadata
        The ``zarr.json``.
    arrays : mapping of str to VirtualArray
        By name.
    groups : mapping of str to VirtualGroup
        By name.
    sources : mapping of str to ScannedSource
        At the root: by url, what sources were when they were scanned. It is part of reference sets, and not of what
        a key resolves to.

    Raises
    ------
    ValueError
        If a name is used twice or cannot be a part of a store key.
    """

    metadata: GroupMetadata = field(default_factory=GroupMetadata)
    arrays: Mapping[str, VirtualArray] = field(default_factory=dict[str, VirtualArray])
    groups: Mapping[str, VirtualGroup] = field(default_factory=dict[str, "VirtualGroup"])
    sources: Sources = field(default_factory=dict[str, ScannedSource])

    def __post_init__(self) -> None:
        for name in (*self.arrays, *self.groups):
            if not is_node_name(name):
                raise ValueError(f"{name!r} cannot be the name of a Zarr node")
        if twice := self.arrays.keys() & self.groups.keys():
            raise ValueError(f"an array and a group share the name {min(twice)!r}")

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes, with the NumPy types that the source gave them."""
        return self.metadata.typed_attributes()

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What the scan left out anywhere beneath; only the root knows."""
        return self.metadata.skipped

    def __getitem__(self, path: str) -> VirtualArray | VirtualGroup:
        node: VirtualArray | VirtualGroup = self
        for name in filter(None, path.split("/")):
            child = None if isinstance(node, VirtualArray) else node.arrays.get(name) or node.groups.get(name)
            if child is None:
                raise NodeNotFoundError("there is no such array or group", node=path)
            node = child
        return node

    def walk(self, prefix: str = "") -> Iterator[tuple[str, VirtualArray | VirtualGroup]]:
        """Every node beneath, with its path, each group before what it holds; the group itself first."""
        yield prefix, self
        for name, array in self.arrays.items():
            yield join_path(prefix, name), array
        for name, group in self.groups.items():
            yield from group.walk(join_path(prefix, name))

    def walk_arrays(self) -> Iterator[tuple[str, VirtualArray]]:
        """Every array beneath, with its path."""
        return ((path, node) for path, node in self.walk() if isinstance(node, VirtualArray))

    def map_arrays(self, change: Callable[[str, VirtualArray], VirtualArray], prefix: str = "") -> Self:
        """The same hierarchy with every array put through `change`, which gets its path and the array."""
        arrays = {name: change(join_path(prefix, name), array) for name, array in self.arrays.items()}
        groups = {name: group.map_arrays(change, join_path(prefix, name)) for name, group in self.groups.items()}
        return replace(self, arrays=arrays, groups=groups)

    def loaded(self) -> Self:
        """The same hierarchy with every manifest in memory."""
        return self.map_arrays(lambda _, array: replace(array, manifest=array.manifest.loaded()))

    def resolve(self, key: str) -> StoredValue | None:
        """What a store key stands for, or None if there is nothing under it.

        The single place where a key becomes bytes; stores, filesystems and servers only pass them on.
        """
        if key == METADATA_KEY:
            return StoredValue((encode_metadata(self.metadata),))
        name, _, rest = key.partition("/")
        child = self.arrays.get(name) or self.groups.get(name)
        return child.resolve(rest) if child is not None and rest else None

    def keys(self) -> Iterator[str]:
        """Every store key that stands for something, depth first."""
        for path, node in self.walk():
            yield join_path(path, METADATA_KEY)
            if isinstance(node, VirtualArray):
                yield from (join_path(path, key) for key in node.chunk_keys())

    def equals(self, other: VirtualGroup) -> bool:
        """Whether both hold the same nodes, with the same metadata and the same chunks."""
        if self is other:
            return True
        mine, theirs = dict(self.walk()), dict(other.walk())
        return mine.keys() == theirs.keys() and all(_same(node, theirs[path]) for path, node in mine.items())

    @property
    def urls(self) -> tuple[str, ...]:
        """The sources that references point into, each once, in order of first use."""
        return tuple(dict.fromkeys(url for _, array in self.walk_arrays() for url in array.manifest.urls))

    def to_store(self, **options: Any) -> VirtualStore:  # noqa: ANN401  passed on
        """A read-only Zarr store over the hierarchy; `options` go to `virtualzarr_refs.store.VirtualStore`."""
        from virtualzarr_refs.store import VirtualStore  # noqa: PLC0415  zarr is slow to import

        return VirtualStore(self, **options)

    def to_xarray(self, *, virtual: bool = False, **options: Any) -> xr.Dataset:  # noqa: ANN401  passed on
        """The group's arrays as an xarray dataset.

        Parameters
        ----------
        virtual : bool
            Whether variables are references that `xarray.concat`, `xarray.merge` and ``isel`` put together and take
            apart, to be turned into a group again by `virtualzarr_refs.from_xarray`.
        **options
            Go to `xarray.open_dataset`; of a virtual dataset, to `virtualzarr_refs.virtual_xarray.open_virtual`.
        """
        if virtual:
            from virtualzarr_refs.virtual_xarray import open_virtual  # noqa: PLC0415  xarray is slow to import

            return open_virtual(self, **options)
        import xarray as xr  # noqa: PLC0415  slow to import

        return xr.open_dataset(cast("Any", self), engine="virtualzarr_refs", **options)

    def __repr__(self) -> str:
        return f"VirtualGroup(arrays={list(self.arrays)}, groups={list(self.groups)})"


def is_node_name(name: str) -> bool:
    """Whether `name` may be part of a store key (Zarr v3 core, "Node names"); zarr takes a backslash for a slash."""
    return bool(name) and not {"/", "\\"} & set(name) and name.strip(".") != "" and name != METADATA_KEY


def _same(a: VirtualArray | VirtualGroup, b: VirtualArray | VirtualGroup) -> bool:
    if isinstance(a, VirtualArray) and isinstance(b, VirtualArray):
        return a.equals(b)
    return type(a) is type(b) and same_metadata(a.metadata, b.metadata)


def join_path(prefix: str, name: str) -> str:
    """The path of a node, or a store key, beneath another; the root's is empty."""
    return f"{prefix}/{name}" if prefix else name
