"""Other chunks for uncompressed arrays: byte ranges cut and put together, and nothing copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkGrid, RectilinearGrid, RegularGrid
from virtualzarr_refs.combine.encodings import encodings_of
from virtualzarr_refs.combine.parts import Lengths, dimensions_of, lengths_of, stored_lengths, value_bytes
from virtualzarr_refs.combine.values import inline_array, read_arrays
from virtualzarr_refs.errors import NodeNotFoundError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.manifest_cutting import Pieces, join, split
from virtualzarr_refs.shards.plain import without_shards
from virtualzarr_refs.sources import Sources

MAX_INLINE = 1 << 20
"""Bytes of the values of an array that is read and kept inline, where its chunks cannot be cut or joined."""

type Target = int | Sequence[int]
"""The length of all chunks along a dimension, -1 for all of it, or the length of each."""

type Targets = Mapping[int, Lengths]


def rechunk(
    group: VirtualGroup, chunks: Mapping[str, Target], *, storage_options: Mapping[str, object] | None = None
) -> VirtualGroup:
    """Give arrays other chunks along some dimensions, without copying what they hold.

    Uncompressed chunks are byte ranges that can be cut along an axis where chunks have a length of 1 along all axes
    before it, and joined where they follow each other in a file. Arrays of up to 1 MiB for which that does not hold are
    read and kept inline.

    Parameters
    ----------
    group : VirtualGroup
        Arrays that lack the dimensions, here and in groups beneath, stay as they are.
    chunks : mapping of str to int or sequence of int
        By name of a dimension: the length of all chunks but the last, -1 for one chunk, or the length of each chunk.
    storage_options : mapping, optional
        For reading small arrays.

    Returns
    -------
    VirtualGroup
        The same values. No chunk is padded along these dimensions.

    Raises
    ------
    UnsupportedError
        If byte ranges do not allow it; the message names the array, the file and the reason.
    NodeNotFoundError
        If no array has one of the dimensions.
    ValueError
        If a length is not positive, or the lengths listed are not as many elements as the dimension has.
    SourceError, DecodeError
        If a small array cannot be read.
    """
    known = {name for _, array in group.walk_arrays() for name in dimensions_of(array)}
    for name in chunks:
        if name not in known:
            raise NodeNotFoundError(f"no variable has the dimension {name!r}")

    def change(path: str, array: VirtualArray) -> VirtualArray:
        try:
            return rechunk_or_inline(array, _targets(array, chunks), storage_options, group.sources)
        except UnsupportedError as error:
            raise error.at(node=path, url=next(iter(array.manifest.urls), None)) from None

    return without_shards(group).map_arrays(change)


def rechunk_or_inline(
    array: VirtualArray,
    targets: Targets,
    storage_options: Mapping[str, object] | None = None,
    sources: Sources | None = None,
) -> VirtualArray:
    """Give an array other chunks along some axes; a small one is read where byte ranges do not allow it.

    Raises
    ------
    UnsupportedError
        If they do not, and the array is not small.
    SourceError, DecodeError
        If it cannot be read.
    """
    try:
        return rechunk_array(array, targets)
    except UnsupportedError:
        if value_bytes(array) > MAX_INLINE:
            raise
        (values,) = read_arrays([array], storage_options, sources)
        return kept_inline(array, values, targets)


def rechunk_array(array: VirtualArray, targets: Targets) -> VirtualArray:
    """Give an array other chunks along some axes.

    Parameters
    ----------
    array : VirtualArray
        The array.
    targets : mapping of int to ndarray of int64
        By axis, the length of every chunk in elements; together as long as the axis.

    Raises
    ------
    UnsupportedError
        If byte ranges do not allow it.
    """
    changed = {axis: new for axis, new in targets.items() if not np.array_equal(new, lengths_of(array, axis))}
    if not changed:
        return array
    grid = _grid(array, changed)
    if array.manifest.is_missing:
        manifest = Manifest.missing(grid.grid_shape)
    else:
        manifest = _cut(array, changed, _itemsize(array))
    return VirtualArray(replace(array.metadata, chunk_grid=grid), manifest)


def _targets(array: VirtualArray, chunks: Mapping[str, Target]) -> Targets:
    names = dimensions_of(array)
    return {axis: _lengths(name, chunks[name], array.shape[axis]) for axis, name in enumerate(names) if name in chunks}


def _lengths(name: str, target: Target, size: int) -> Lengths:
    """The length of every chunk along a dimension."""
    if not isinstance(target, int):
        lengths = np.array(target, np.int64)
        if lengths.sum() != size or (lengths < 1).any():
            raise ValueError(f"chunks of {list(target)} elements do not make up {name!r}, which has {size} elements")
        return lengths
    if target == 0 or target < -1:
        raise ValueError(f"chunks along {name!r} cannot have {target} elements; -1 is the whole dimension")
    length = size if target == -1 else min(target, size)
    rest = [size % length] if length and size % length else []
    return np.array([length] * (size // max(1, length)) + rest, np.int64)


def _grid(array: VirtualArray, targets: Targets) -> ChunkGrid:
    grid = array.metadata.chunk_grid
    old = grid.chunk_shape if isinstance(grid, RegularGrid) else grid.edges
    edges = tuple(_edge(targets[axis]) if axis in targets else edge for axis, edge in enumerate(old))
    regular = tuple(edge for edge in edges if isinstance(edge, int))
    if len(regular) == len(edges):
        return RegularGrid(array.shape, regular)
    return RectilinearGrid(array.shape, edges)


def _edge(lengths: Lengths) -> int | tuple[int, ...]:
    """One number where all chunks have it; a shorter last one would have to be padded."""
    return int(lengths[0]) if (lengths == lengths[0]).all() else tuple(lengths.tolist())


def _itemsize(array: VirtualArray) -> int:
    """Bytes of a stored value.

    Raises
    ------
    UnsupportedError
        If chunks are more than their values.
    """
    encodings = encodings_of(array.metadata)
    for encoding in encodings:
        if not encoding.is_raw or encoding.chunk_shape is not None or encoding.dtype.hasobject:
            names = ", ".join(str(codec["name"]) for codec in encoding.codecs)
            raise UnsupportedError(
                f"its chunks are encoded ({names}) and can only be cut or joined by reading them; leave the variable "
                "out, or choose the chunks of dask when it is opened: chunks={...}"
            )
    sizes = {encoding.dtype.itemsize for encoding in encodings}
    if len(sizes) > 1:
        raise UnsupportedError("its chunks hold values of several types; rechunk before files are put together")
    return sizes.pop()


def _cut(array: VirtualArray, targets: Targets, itemsize: int) -> Manifest:
    """Cut chunks from the first axis to the last, then join them from the last to the first."""
    manifest, names = array.manifest.loaded(), dimensions_of(array)
    lengths = [stored_lengths(array, axis) for axis in range(len(array.shape))]
    _check_sizes(manifest, lengths, itemsize)
    for axis in sorted(targets):
        pieces = Pieces.between(lengths[axis], targets[axis])
        if not np.array_equal(pieces.length, lengths[axis]):
            _check_leading(lengths[:axis], names, axis, "cut")
            manifest = split(manifest, axis, pieces, _steps(lengths, axis, itemsize))
            lengths[axis] = pieces.length
    for axis in sorted(targets, reverse=True):
        if len(lengths[axis]) != len(targets[axis]):
            _check_leading(lengths[:axis], names, axis, "joined")
            starts = np.searchsorted(np.cumsum(lengths[axis]), np.cumsum(targets[axis]) - targets[axis], "right")
            manifest = join(manifest, axis, starts)
            lengths[axis] = targets[axis]
    return manifest


def _steps(lengths: Sequence[Lengths], axis: int, itemsize: int) -> NDArray[np.int64]:
    """Bytes of one element along an axis, by chunk of the axes after it."""
    steps = np.full((1,) * len(lengths), itemsize, np.int64)
    for other in range(axis + 1, len(lengths)):
        steps = steps * lengths[other].reshape((-1,) + (1,) * (len(lengths) - other - 1))
    return steps


def _check_sizes(manifest: Manifest, lengths: Sequence[Lengths], itemsize: int) -> None:
    expected = np.broadcast_to(_steps([np.ones(1, np.int64), *lengths], 0, itemsize)[0], manifest.grid_shape)
    positions = manifest.virtual_positions()
    is_whole = np.array_equal(manifest.length.reshape(-1)[positions], expected.reshape(-1)[positions])
    if not is_whole or any(len(data) != expected.reshape(-1)[place] for place, data in manifest.inline.items()):
        raise UnsupportedError("its chunks have other sizes in bytes than their values; leave the variable out")


def _check_leading(before: Sequence[Lengths], names: Sequence[str], axis: int, verb: str) -> None:
    for other, lengths in enumerate(before):
        if (lengths != 1).any():
            raise UnsupportedError(
                f"its chunks cannot be {verb} along {names[axis]!r} while they have up to {lengths.max()} elements "
                f"along {names[other]!r}, because the bytes are not in one piece; ask for {{{names[other]!r}: 1}} as "
                "well, or leave the variable out"
            )


def kept_inline(array: VirtualArray, values: NDArray[Any], targets: Targets) -> VirtualArray:
    """An array whose values are kept inline.

    Parameters
    ----------
    array : VirtualArray
        What it takes names and attributes from.
    values : ndarray
        What it holds, of the array's shape.
    targets : mapping of int to ndarray of int64
        By axis, the length of every chunk in elements; along the others chunks are as the array has them.
    """
    whole = inline_array(array.metadata, values)
    grid = _grid(array, {axis: targets.get(axis, lengths_of(array, axis)) for axis in range(len(array.shape))})
    starts = [list(accumulate(grid.chunk_lengths(axis), initial=0)) for axis in range(len(array.shape))]
    chunks: dict[int, bytes] = {}
    for position, index in enumerate(np.ndindex(grid.grid_shape)):
        box: tuple[Any, ...] = tuple(slice(axis[i], axis[i + 1]) for axis, i in zip(starts, index, strict=True))
        chunks[position] = inline_array(whole.metadata, values[box]).manifest.loaded().inline[0]
    return VirtualArray(replace(whole.metadata, chunk_grid=grid), Manifest.from_inline(grid.grid_shape, chunks))
