"""How an array's index space is cut into chunks, and how chunks are named.

Zarr v3 core, "Regular grids", and the registered extension ``rectilinear`` (its earlier name is ``rectangular``).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from virtualzarr_refs.errors import ReferenceSetError

type Shape = tuple[int, ...]
type ChunkIndex = tuple[int, ...]
type JSON = bool | int | float | str | list[JSON] | dict[str, JSON] | None


@dataclass(frozen=True, slots=True)
class RegularGrid:
    """Chunks of one shape; the last ones of an axis may reach beyond the array.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array, in elements.
    chunk_shape : tuple of int
        Shape of every chunk, in elements, at least 1 along each axis.

    Raises
    ------
    ValueError
        If the two differ in rank, a length is negative or a chunk length is not positive.
    """

    shape: Shape
    chunk_shape: Shape

    def __post_init__(self) -> None:
        _check_shape(self.shape)
        if len(self.shape) != len(self.chunk_shape):
            raise ValueError(f"array shape {self.shape} and chunk shape {self.chunk_shape} differ in rank")
        if any(length < 1 for length in self.chunk_shape):
            raise ValueError(f"chunk lengths must be positive: {self.chunk_shape}")

    @property
    def grid_shape(self) -> Shape:
        """Number of chunks along each axis."""
        return tuple(-(-size // length) for size, length in zip(self.shape, self.chunk_shape, strict=True))

    def encoded_shape(self, index: ChunkIndex) -> Shape:
        """Shape, in elements, that the chunk at `index` decodes to: edge chunks are padded to full size."""
        _check_index(index, self.grid_shape)
        return self.chunk_shape

    def chunk_lengths(self, axis: int) -> tuple[int, ...]:
        """What each chunk contributes to the array along `axis`, in elements."""
        size, length = self.shape[axis], self.chunk_shape[axis]
        full, rest = divmod(size, length)
        return (length,) * full + ((rest,) if rest else ())

    def to_json(self) -> dict[str, JSON]:
        """The ``chunk_grid`` member of ``zarr.json``."""
        return {"name": "regular", "configuration": {"chunk_shape": list(self.chunk_shape)}}


@dataclass(frozen=True, slots=True)
class RectilinearGrid:
    """Chunks whose lengths are listed along each axis.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array, in elements.
    edges : tuple of (int or tuple of int)
        Along each axis either one length for all chunks, or every chunk's length. Lengths that are listed
        must cover the axis; the last chunk may reach beyond it.

    Raises
    ------
    ValueError
        If ranks differ, a length is not positive, or the chunks do not cover the array.
    """

    shape: Shape
    edges: tuple[int | tuple[int, ...], ...]

    def __post_init__(self) -> None:
        _check_shape(self.shape)
        if len(self.shape) != len(self.edges):
            raise ValueError(f"array shape {self.shape} and {len(self.edges)} lists of chunk lengths differ in rank")
        for size, edge in zip(self.shape, self.edges, strict=True):
            lengths = (edge,) if isinstance(edge, int) else edge
            if any(length < 1 for length in lengths):
                raise ValueError(f"chunk lengths must be positive: {edge}")
            if not isinstance(edge, int) and sum(edge) < size:
                raise ValueError(f"chunks of {sum(edge)} elements do not cover an axis of {size}")

    @property
    def grid_shape(self) -> Shape:
        """Number of chunks along each axis."""
        pairs = zip(self.shape, self.edges, strict=True)
        return tuple(-(-size // edge) if isinstance(edge, int) else len(edge) for size, edge in pairs)

    def encoded_shape(self, index: ChunkIndex) -> Shape:
        """Shape, in elements, that the chunk at `index` decodes to."""
        _check_index(index, self.grid_shape)
        return tuple(e if isinstance(e, int) else e[i] for i, e in zip(index, self.edges, strict=True))

    def chunk_lengths(self, axis: int) -> tuple[int, ...]:
        """What each chunk contributes to the array along `axis`, in elements."""
        edge, size = self.edges[axis], self.shape[axis]
        if isinstance(edge, int):
            return RegularGrid((size,), (edge,)).chunk_lengths(0)
        starts = itertools.accumulate(edge, initial=0)
        return tuple(max(0, min(length, size - start)) for start, length in zip(starts, edge, strict=False))

    def to_json(self) -> dict[str, JSON]:
        """The ``chunk_grid`` member of ``zarr.json``, with runs of equal lengths counted."""
        shapes: list[JSON] = [edge if isinstance(edge, int) else _run_lengths(edge) for edge in self.edges]
        return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": shapes}}


type ChunkGrid = RegularGrid | RectilinearGrid


def parse_chunk_grid(value: object, shape: Shape) -> ChunkGrid:
    """Read the ``chunk_grid`` member of ``zarr.json``.

    Parameters
    ----------
    value : object
        The parsed JSON.
    shape : tuple of int
        Shape of the array, in elements.

    Raises
    ------
    ReferenceSetError
        If the grid is of another kind, or does not fit the shape.
    """
    try:
        member = cast("dict[str, dict[str, list[int]]]", value)
        name, configuration = cast("str", member["name"]), member["configuration"]
        if name == "regular":
            return RegularGrid(shape, tuple(map(_integer, configuration["chunk_shape"])))
        if name in ("rectilinear", "rectangular"):
            return RectilinearGrid(shape, tuple(_parse_edge(edge) for edge in _chunk_shapes(configuration)))
    except (KeyError, TypeError, ValueError) as error:
        raise ReferenceSetError(f"the chunk grid {value!r} cannot be read: {error}") from error
    raise ReferenceSetError(f"the chunk grid {name!r} is not known; regular and rectilinear grids are")


@dataclass(frozen=True, slots=True)
class ChunkKeyEncoding:
    """How a chunk index becomes a store key (Zarr v3 core, "Chunk key encoding").

    Parameters
    ----------
    name : {"default", "v2"}
        ``default`` puts ``c`` in front, ``v2`` does not.
    separator : {"/", "."}
        Between the numbers.
    """

    name: Literal["default", "v2"] = "default"
    separator: Literal["/", "."] = "/"

    def encode(self, index: ChunkIndex) -> str:
        """The chunk key, relative to the array."""
        if self.name == "default":
            return self.separator.join(("c", *map(str, index)))
        return self.separator.join(map(str, index)) or "0"

    def decode(self, key: str, rank: int) -> ChunkIndex | None:
        """The chunk index that `key` names, or None if it names no chunk of an array of this rank."""
        if self.name == "default":
            head, *numbers = key.split(self.separator)
            if head != "c":
                return None
        else:
            numbers = [] if (key, rank) == ("0", 0) else key.split(self.separator)
        if len(numbers) != rank or not all(_NUMBER.fullmatch(number) for number in numbers):
            return None
        return tuple(map(int, numbers))

    def to_json(self) -> dict[str, JSON]:
        """The ``chunk_key_encoding`` member of ``zarr.json``."""
        return {"name": self.name, "configuration": {"separator": self.separator}}


def parse_chunk_key_encoding(value: object) -> ChunkKeyEncoding:
    """Read the ``chunk_key_encoding`` member of ``zarr.json``.

    Raises
    ------
    ReferenceSetError
        If the encoding is not one of the two that the Zarr v3 core specification names.
    """
    name = value.get("name") if isinstance(value, Mapping) else value
    configuration = value.get("configuration") if isinstance(value, Mapping) else None
    default = {"default": "/", "v2": "."}.get(name) if isinstance(name, str) else None
    given = cast("Mapping[str, str]", configuration) if isinstance(configuration, Mapping) else {}
    separator = given.get("separator", default)
    if default is None or separator not in ("/", "."):
        raise ReferenceSetError(f"the chunk key encoding {value!r} is not known")
    return ChunkKeyEncoding(cast("Literal['default', 'v2']", name), separator)


_NUMBER = re.compile("0|[1-9][0-9]{0,18}")


def _check_shape(shape: Shape) -> None:
    if any(size < 0 for size in shape):
        raise ValueError(f"an array's lengths cannot be negative: {shape}")


def _check_index(index: ChunkIndex, grid_shape: Shape) -> None:
    if len(index) != len(grid_shape) or not all(0 <= i < n for i, n in zip(index, grid_shape, strict=True)):
        raise IndexError(f"chunk {index} lies outside a grid of {grid_shape} chunks")


def _run_lengths(lengths: Sequence[int]) -> list[JSON]:
    runs = [(length, len(list(group))) for length, group in itertools.groupby(lengths)]
    return [length if count == 1 else [length, count] for length, count in runs]


def _integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no number of elements")
    return value


def _chunk_shapes(configuration: Mapping[str, object]) -> list[object]:
    if configuration.get("kind", "inline") != "inline":
        raise ValueError("only inline lists of chunk lengths are known")
    # The earlier extension named the member chunk_shape.
    key = "chunk_shapes" if "chunk_shapes" in configuration else "chunk_shape"
    return cast("list[object]", configuration[key])


MAX_LISTED_CHUNKS = 1 << 24
"""Chunks that a run-length list of one axis may stand for; more is taken for an attack on memory."""


def _parse_edge(edge: object) -> int | tuple[int, ...]:
    if not isinstance(edge, list | tuple):
        return _integer(edge)
    pairs = ([run, 1] if isinstance(run, int) else run for run in cast("list[int | list[int]]", edge))
    runs = [(_integer(length), _integer(count)) for length, count in pairs]
    if sum(count for _, count in runs) > MAX_LISTED_CHUNKS or any(count < 1 for _, count in runs):
        raise ValueError("a run of chunk lengths has an impossible count")
    return tuple(itertools.chain.from_iterable((length,) * count for length, count in runs))


def chunk_count(grid_shape: Shape) -> int:
    """Number of chunks of a grid; 1 for a scalar."""
    return math.prod(grid_shape)
