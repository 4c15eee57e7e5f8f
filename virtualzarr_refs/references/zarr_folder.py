"""A Zarr v3 hierarchy in a local folder, its chunks and shards taken for references.

What is under the key of a chunk may be a link to a file that serves several arrays as their shard; see
`virtualzarr_refs.embedding`. The indexes of shards are read and checked here, so that a file which has lost its index
is noticed before anything is read from it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.chunk_grid import ChunkIndex, RegularGrid
from virtualzarr_refs.errors import ReferenceSetError, SourceChangedError, VirtualZarrError
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup
from virtualzarr_refs.inner_chunks import ABSENT, InnerChunks, checksum
from virtualzarr_refs.manifest import Manifest, VirtualChunk
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata, decode_metadata
from virtualzarr_refs.references.trust import Trust
from virtualzarr_refs.sharding import ShardCodec, is_sharded


def is_zarr_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder that is named like a Zarr hierarchy and holds one."""
    folder = Path(path)
    return folder.suffix == ".zarr" and (folder / METADATA_KEY).is_file()


def read_zarr_folder(path: str | os.PathLike[str], trust: Trust) -> VirtualGroup:
    """Open a hierarchy.

    Parameters
    ----------
    path : str or path
        The folder.
    trust : Trust
        Where its links may lead.

    Raises
    ------
    ReferenceSetError
        If a document in it is malformed, its root is an array, or a link leads where it may not.
    SourceChangedError
        If a shard has no sound index.
    """
    root = _read_node(Path(path), "")
    if isinstance(root, VirtualArray):
        raise ReferenceSetError("the root of the hierarchy is an array; open the folder that holds it")
    for url in root.urls:
        trust.require(url)
    return root


def _read_node(folder: Path, path: str) -> VirtualArray | VirtualGroup:
    try:
        metadata = decode_metadata((folder / METADATA_KEY).read_bytes())
        if isinstance(metadata, ArrayMetadata):
            return VirtualArray(metadata, _read_manifest(folder, metadata))
        return _read_group(folder, path, metadata)
    except VirtualZarrError as error:
        raise error.at(node=path or "/") from error.__cause__


def _read_group(folder: Path, path: str, metadata: GroupMetadata) -> VirtualGroup:
    arrays: dict[str, VirtualArray] = {}
    groups: dict[str, VirtualGroup] = {}
    for inner in sorted(folder.iterdir()):
        if not (inner / METADATA_KEY).is_file():
            continue
        node = _read_node(inner, f"{path}/{inner.name}".lstrip("/"))
        if isinstance(node, VirtualArray):
            arrays[inner.name] = node
        else:
            groups[inner.name] = node
    return VirtualGroup(metadata, arrays, groups)


def _read_manifest(folder: Path, metadata: ArrayMetadata) -> Manifest:
    grid_shape = metadata.chunk_grid.grid_shape
    files = dict(_chunk_files(folder, metadata))
    if not is_sharded(metadata):
        whole = {i: VirtualChunk(str(file), ByteRange(0, file.stat().st_size)) for i, file in files.items()}
        return Manifest.from_chunks(grid_shape, whole)
    shards = {index: _read_index(file, index, metadata) for index, file in files.items()}
    return _of_shards(grid_shape, files, shards)


def _of_shards(
    grid_shape: tuple[int, ...], files: Mapping[ChunkIndex, Path], shards: Mapping[ChunkIndex, InnerChunks]
) -> Manifest:
    spans = Manifest.from_chunks(grid_shape, {i: VirtualChunk(str(files[i]), s.span) for i, s in shards.items()})
    inner = {int(np.ravel_multi_index(i, grid_shape)) if i else 0: shard for i, shard in shards.items()}
    return Manifest(spans.urls, spans.url_id, spans.offset, spans.length, inner_chunks=inner)


def _chunk_files(folder: Path, metadata: ArrayMetadata) -> Iterator[tuple[ChunkIndex, Path]]:
    """The index of each chunk, and the file that its key leads to."""
    grid_shape = metadata.chunk_grid.grid_shape
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            index = metadata.chunk_key_encoding.decode(file.relative_to(folder).as_posix(), len(grid_shape))
            if index is not None and all(i < n for i, n in zip(index, grid_shape, strict=True)):
                yield index, file.resolve()


def _read_index(file: Path, index: ChunkIndex, metadata: ArrayMetadata) -> InnerChunks:
    """The index of a shard, without what it says of chunks beyond the array."""
    codec = ShardCodec.of(metadata)
    inner_grid = codec.inner_grid(metadata.chunk_grid.encoded_shape(index))
    pairs = np.frombuffer(_index_bytes(file, codec, 16 * math.prod(inner_grid)), "<u8").reshape(*inner_grid, 2)
    inside = np.full((*inner_grid, 2), ABSENT)
    box = tuple(map(slice, _inner_chunks_inside(index, codec, metadata)))
    inside[box] = pairs[box]
    try:
        inner = InnerChunks(*(inside[..., column].reshape(-1) for column in range(2)))
    except ValueError as error:
        raise SourceChangedError(f"the index of the shard is damaged: {error}", url=str(file)) from error
    if inner.span.stop > file.stat().st_size:
        raise SourceChangedError("the index of the shard points beyond the end of the file", url=str(file))
    return inner


def _index_bytes(file: Path, codec: ShardCodec, size: int) -> bytes:
    """The pairs of an index, once their checksum is found right."""
    whole = size + 4 * codec.has_checksum
    with file.open("rb") as opened:
        end = opened.seek(0, os.SEEK_END)
        opened.seek(0 if codec.index_location == "start" else max(0, end - whole))
        data = opened.read(whole)
    if len(data) < whole or (codec.has_checksum and checksum(data[:size]) != data[size:]):
        raise SourceChangedError(
            f"the index at its {codec.index_location} is gone or damaged; opening an HDF5 file for writing cuts off "
            "what was appended to it: embed the indexes again",
            url=str(file),
        )
    return data[:size]


def _inner_chunks_inside(index: ChunkIndex, codec: ShardCodec, metadata: ArrayMetadata) -> Iterator[int]:
    """Along each axis, the number of inner chunks of a shard that are not wholly beyond the array."""
    for axis, (i, length) in enumerate(zip(index, codec.chunk_shape, strict=True)):
        yield -(-_length(metadata, axis, i) // length)


def _length(metadata: ArrayMetadata, axis: int, i: int) -> int:
    """What the shard contributes along an axis, in elements."""
    grid = metadata.chunk_grid
    if isinstance(grid, RegularGrid):
        return min(grid.chunk_shape[axis], grid.shape[axis] - i * grid.chunk_shape[axis])
    return grid.chunk_lengths(axis)[i]
