"""From the references of one array to the columns of its manifest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkKeyEncoding, Shape
from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.inner_chunks import InnerChunks
from virtualzarr_refs.manifest import MISSING, Manifest
from virtualzarr_refs.references.chunk_keys import decode_keys
from virtualzarr_refs.references.chunk_values import PREFIX_LENGTH, Reference, decode_inline, malformed
from virtualzarr_refs.references.urls import SetUrls

MAX_CHUNKS = 1 << 31
"""Chunks of a grid that columns are made for; more is taken for an attack on memory."""

MAX_EMPTY_CHUNKS = 1 << 26
"""Chunks of a grid that columns are made for however few references there are."""

MAX_CHUNKS_A_REFERENCE = 1 << 12
"""Chunks of a grid for each reference, beyond those; a grid with fewer references is taken for an attack on memory."""

MAX_MISSING_CHUNKS = 1 << 60
"""The same for a grid without a reference, which takes no memory."""

_MAX_OFFSET = 1 << 63


@dataclass(frozen=True, slots=True)
class Keyed:
    """What a set says of one array: keys and, at the same places, values.

    Parameters
    ----------
    keys : list of str
        Full keys.
    values : list of object
        As parsed from JSON, not yet checked.
    """

    keys: list[str]
    values: list[object]


@dataclass(frozen=True, slots=True)
class Grid:
    """How the chunks of an array are laid out and named in a set.

    Parameters
    ----------
    shape : tuple of int
        Number of chunks along each axis.
    encoding : ChunkKeyEncoding
        How they are named.
    start : int
        Length of what stands before a chunk's own name in its key, in characters.
    has_variants : bool
        Whether its chunks are encoded in different ways.
    has_shards : bool
        Whether they are shards, and byte ranges may make up one.
    """

    shape: Shape
    encoding: ChunkKeyEncoding
    start: int
    has_variants: bool
    has_shards: bool = False


def read_manifest(keyed: Keyed, grid: Grid, urls: SetUrls) -> tuple[Manifest, list[str]]:
    """Build the manifest of one array.

    Parameters
    ----------
    keyed : Keyed
        Its references.
    grid : Grid
        Its chunk grid.
    urls : SetUrls
        Where urls point.

    Returns
    -------
    manifest, outside : Manifest, list of str
        The chunks of the grid, and the keys of references that lie outside it.

    Raises
    ------
    ReferenceSetError
        If a key names no chunk, or a value is no reference; the message quotes the key.
    SourceError
        If the size of a whole source cannot be found out.
    """
    if math.prod(grid.shape) > max_chunks(len(keyed.keys)):
        raise ReferenceSetError(f"a grid of {grid.shape} chunks is too large to be read")
    if not keyed.keys:
        return Manifest.missing(grid.shape), []
    positions, inside = _positions(keyed.keys, grid)
    kept = _inside(keyed, inside)
    references = [i for i, value in enumerate(kept.values) if type(value) in (list, tuple)]
    inline = _read_inline(kept, positions, set(references))
    shards = _take_indexes(kept, references) if grid.has_shards else {}
    manifest = _read_columns(kept, references, positions, grid, urls)
    if shards:
        manifest = replace(manifest, inner_chunks={int(positions[i]): inner for i, inner in shards.items()})
    outside = [key for key, within in zip(keyed.keys, inside.tolist(), strict=True) if not within]
    return _with_inline(manifest, inline, has_variants=grid.has_variants), outside


def max_chunks(references: int) -> int:
    """Chunks that a grid with so many references may have."""
    if not references:
        return MAX_MISSING_CHUNKS
    return min(MAX_CHUNKS, MAX_EMPTY_CHUNKS + references * MAX_CHUNKS_A_REFERENCE)


def _positions(keys: Sequence[str], grid: Grid) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Positions in C order of the keys inside the grid, and which keys those are."""
    indexes = decode_keys(keys, grid.start, len(grid.shape), grid.encoding)
    inside = (indexes < np.array(grid.shape, np.int64)).all(axis=1)
    if not grid.shape:
        if len(keys) > 1:
            raise ReferenceSetError(f"{keys[0]!r} and {keys[1]!r} both name the one chunk of an array")
        return np.zeros(1, np.intp), inside
    return np.asarray(np.ravel_multi_index(tuple(indexes[inside].T), grid.shape)), inside


def _inside(keyed: Keyed, inside: NDArray[np.bool_]) -> Keyed:
    if inside.all():
        return keyed
    places = np.flatnonzero(inside).tolist()
    return Keyed([keyed.keys[i] for i in places], [keyed.values[i] for i in places])


def _read_inline(keyed: Keyed, positions: NDArray[np.intp], references: set[int]) -> dict[int, bytes]:
    if len(references) == len(keyed.keys):
        return {}
    pairs = ((i, value) for i, value in enumerate(keyed.values) if i not in references)
    return {int(positions[i]): decode_inline(value, keyed.keys[i]) for i, value in pairs}


def _take_indexes(keyed: Keyed, places: Sequence[int]) -> dict[int, InnerChunks]:
    """Take the indexes of shards from the references that have one, and say where those are."""
    indexes: dict[int, InnerChunks] = {}
    for i in places:
        reference = cast("Reference", keyed.values[i])
        if len(reference) == 4 and isinstance(reference[3], str):
            indexes[i] = _read_index(reference, keyed.keys[i])
            keyed.values[i] = reference[:3]
    return indexes


def _read_index(reference: Reference, key: str) -> InnerChunks:
    try:
        inner = InnerChunks.from_bytes(decode_inline(reference[3], key))
    except ReferenceSetError:
        raise
    except ValueError as error:
        raise ReferenceSetError(f"the index of the shard {key!r} cannot be read: {error}") from error
    if (inner.span.offset, inner.span.length) != (*reference[1:3],):
        raise ReferenceSetError(f"the shard {key!r} does not lie where its index says")
    return inner


def _read_columns(
    keyed: Keyed, places: Sequence[int], positions: NDArray[np.intp], grid: Grid, urls: SetUrls
) -> Manifest:
    if not places:
        return Manifest.missing(grid.shape)
    keys = [keyed.keys[i] for i in places]
    references = [cast("Reference", keyed.values[i]) for i in places]
    width = 4 if grid.has_variants else 3
    _check_widths(keys, references, width)
    whole = [reference[0] for reference in references if len(reference) == 1]
    sizes = urls.sizes(map(urls.resolve, whole)) if whole else {}
    full = [r if len(r) > 1 else (r[0], 0, sizes[urls.resolve(r[0])]) for r in references] if whole else references
    named, *numbers = zip(*full, strict=True)
    ids, table = _number_urls(keys, named, urls)
    offset, length, *variant = (_integers(keys, full, column, i + 1) for i, column in enumerate(numbers))
    _check_ends(keys, full, offset, length)
    return _scatter(grid.shape, positions[places], table, (ids, offset, length, *variant))


def _check_widths(keys: Sequence[str], references: Sequence[Reference], width: int) -> None:
    allowed = {width} if width == 4 else {1, width}
    widths = list(map(len, references))
    if set(widths) <= allowed:
        return
    wrong = next(i for i, n in enumerate(widths) if n not in allowed)
    raise malformed(keys[wrong], references[wrong])


def _number_urls(
    keys: Sequence[str], named: Sequence[object], urls: SetUrls
) -> tuple[NDArray[np.uint32], tuple[str, ...]]:
    """The number of each url in a table of distinct ones, and the table."""
    if set(map(type, named)) != {str}:
        wrong = next(i for i, url in enumerate(named) if type(url) is not str)
        raise ReferenceSetError(f"the reference of {keys[wrong]!r} has the url {named[wrong]!r:.200}, which is no text")
    resolved = {url: _resolve(keys, named, cast("str", url), urls) for url in dict.fromkeys(named)}
    numbers = {url: i for i, url in enumerate(dict.fromkeys(resolved.values()))}
    number_of = {url: numbers[target] for url, target in resolved.items()}
    return np.fromiter(map(number_of.__getitem__, named), np.uint32, len(named)), tuple(numbers)


def _resolve(keys: Sequence[str], named: Sequence[object], url: str, urls: SetUrls) -> str:
    try:
        return urls.resolve(url)
    except ReferenceSetError as error:
        raise ReferenceSetError(f"{error.message} (the reference of {keys[named.index(url)]!r})") from error


def _integers(
    keys: Sequence[str], references: Sequence[Reference], column: Sequence[object], place: int
) -> NDArray[np.uint64]:
    limit = 1 << 16 if place == 3 else _MAX_OFFSET
    if set(map(type, column)) == {int}:
        numbers = cast("Sequence[int]", column)
        if min(numbers) >= 0 and max(numbers) < limit:
            return np.fromiter(numbers, np.uint64, len(numbers))
    wrong = next(i for i, n in enumerate(column) if type(n) is not int or not 0 <= n < limit)
    raise malformed(keys[wrong], references[wrong])


def _check_ends(
    keys: Sequence[str], references: Sequence[Reference], offset: NDArray[np.uint64], length: NDArray[np.uint64]
) -> None:
    beyond = np.flatnonzero(offset + length >= _MAX_OFFSET).tolist()
    if beyond:
        raise malformed(keys[beyond[0]], references[beyond[0]])


def _scatter(
    grid_shape: Shape, positions: NDArray[np.intp], urls: tuple[str, ...], columns: Sequence[NDArray[Any]]
) -> Manifest:
    """A manifest with `columns` (url id, offset, length and, if any, variant) at the given positions."""
    url_id = np.full(grid_shape, MISSING, np.uint32)
    offset, length = np.zeros(grid_shape, np.uint64), np.zeros(grid_shape, np.uint64)
    variant = np.zeros(grid_shape, np.uint16) if len(columns) > 3 else None
    for spread, column in zip((url_id, offset, length, variant), columns, strict=False):
        cast("NDArray[Any]", spread).reshape(-1)[positions] = column
    return Manifest(urls, url_id, offset, length, variant)


def _with_inline(manifest: Manifest, inline: Mapping[int, bytes], *, has_variants: bool) -> Manifest:
    if not has_variants:
        return replace(manifest, inline=inline) if inline else manifest
    variant = manifest.variant
    if variant is None:
        variant = np.zeros(manifest.grid_shape, np.uint16)
    for position, value in inline.items():
        if len(value) < PREFIX_LENGTH:
            raise ReferenceSetError("a chunk that is written out lacks the number of its variant")
        variant.reshape(-1)[position] = int.from_bytes(value[:PREFIX_LENGTH], "little")
    return replace(manifest, variant=variant, inline={p: value[PREFIX_LENGTH:] for p, value in inline.items()})
