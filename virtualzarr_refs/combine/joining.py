"""Arrays of several files put one after the other: codecs, variants, fill values and chunks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numcodecs.zstd import Zstd
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import JSON, Shape
from virtualzarr_refs.codecs.names import MIXED, PACKING
from virtualzarr_refs.combine.encodings import Codec, Codecs, Encoding, encodings_of
from virtualzarr_refs.combine.grids import JoinedGrid, decoded_shape, join_grids
from virtualzarr_refs.combine.parts import Lengths, Part, stored_lengths, stored_shape
from virtualzarr_refs.combine.targets import Target, choose_target, constant_chunk
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.manifest_joining import concatenate, missing_positions, with_inline
from virtualzarr_refs.metadata import ArrayMetadata

MAX_VARIANTS = 1 << 16
"""A variant's number has two bytes."""


@dataclass(frozen=True, slots=True)
class Joined:
    """An array that was put together.

    Parameters
    ----------
    array : VirtualArray
        The whole; its attributes are those of the first file that has it.
    variants : tuple of Encoding
        The ways in which its chunks are encoded.
    files : tuple of str
        For each of them the first file that has it.
    is_normalised : bool
        Whether files differ in what does not matter to decoding.
    is_unpacked : bool
        Whether the values are what CF's packing stands for, and no longer what files hold.
    """

    array: VirtualArray
    variants: tuple[Encoding, ...]
    files: tuple[str, ...]
    is_normalised: bool
    is_unpacked: bool


def join_arrays(parts: Sequence[Part], axis: int) -> Joined:
    """Put arrays one after the other.

    Parameters
    ----------
    parts : sequence of Part
        In order; at least one has an array.
    axis : int
        Along which.

    Raises
    ------
    UnsupportedError
        If the whole cannot be said in Zarr's terms.
    """
    present = [part.array for part in parts if part.array is not None]
    _check_shapes(present, axis)
    grid = join_grids([part.array for part in parts], [part.length for part in parts], axis)
    table = _Table()
    pieces = [
        _Piece.of(part, lengths, axis, grid) if part.array else None
        for part, lengths in zip(parts, grid.lengths, strict=True)
    ]
    pieces = _cropped_alike(pieces)
    own = [piece for piece in pieces if piece is not None]
    is_partly_absent = any(piece is None for piece in pieces)
    target = choose_target(present, _distinct(own), is_partly_absent=is_partly_absent)
    filled = [_filled(piece, target, table, axis) if piece else None for piece in pieces]
    manifests, numbers = _manifests(filled, grid, axis)
    codecs = table.codecs(target)
    mixed = codecs[0]["name"] == MIXED
    manifest = concatenate(manifests, axis, numbers if mixed else None)
    metadata = _metadata(present[0].metadata, grid, target, codecs)
    array = VirtualArray(metadata, manifest)
    return Joined(array, tuple(table.encodings), tuple(table.files), table.is_normalised, _has_lost(present, target))


@dataclass(slots=True)
class _Table:
    """The distinct encodings of an array, by number."""

    encodings: list[Encoding] = field(default_factory=list[Encoding])
    files: list[str] = field(default_factory=list[str])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    is_normalised: bool = False

    def number(self, encoding: Encoding, file: str) -> int:
        if encoding.key not in self.numbers:
            if len(self.encodings) == MAX_VARIANTS:
                raise UnsupportedError(f"its chunks are encoded in more than {MAX_VARIANTS} ways")
            self.numbers[encoding.key] = len(self.encodings)
            self.encodings.append(encoding)
            self.files.append(file)
        number = self.numbers[encoding.key]
        self.is_normalised |= self.encodings[number].codecs_key != encoding.codecs_key
        return number

    def codecs(self, target: Target) -> Codecs:
        """The pipeline of the array: that of its only encoding, or the one that tells several apart."""
        has_other_type = self.encodings[0].data_type != target.data_type
        if len(self.encodings) == 1 and not target.is_unpacked and not has_other_type:
            return self.encodings[0].to_pipeline()
        variants: list[JSON] = [encoding.to_variant(target.data_type) for encoding in self._terms(target)]
        mixed: Codec = {"name": MIXED, "configuration": {"variants": variants}}
        return (mixed,)

    def _terms(self, target: Target) -> Iterator[Encoding]:
        """The encodings; the packing is the array's own while values stay what files hold."""
        for encoding in self.encodings:
            yield encoding if target.is_unpacked else replace(encoding, packing=None, types=None)


@dataclass(frozen=True, slots=True)
class _Piece:
    """One file's array, made ready: its encodings, and its chunks as they are to be stored."""

    part: Part
    array: VirtualArray
    encodings: tuple[Encoding, ...]
    manifest: Manifest
    is_trimmed: bool = False

    @classmethod
    def of(cls, part: Part, lengths: Lengths, axis: int, grid: JoinedGrid) -> _Piece:
        array = cast("VirtualArray", part.array)
        encodings = encodings_of(array.metadata)
        if _fits(array, lengths, axis, grid) or all(encoding.chunk_shape is not None for encoding in encodings):
            return cls(part, array, encodings, array.manifest.loaded())
        trimmed = _trimmed(array, encodings, lengths, axis, grid)
        if trimmed is not None:
            return cls(part, array, encodings, trimmed, is_trimmed=True)
        shape = stored_shape(array)
        if shape is None:
            return cls(part, array, *_by_stored_shape(array, encodings))
        return cls(part, array, tuple(_stored(encoding, shape) for encoding in encodings), array.manifest.loaded())


def _by_stored_shape(array: VirtualArray, encodings: Sequence[Encoding]) -> tuple[tuple[Encoding, ...], Manifest]:
    """Encodings of an array whose chunks were stored at several shapes, one for each; and its chunks, numbered anew."""
    axes = [np.unique(stored_lengths(array, axis), return_inverse=True) for axis in range(len(array.shape))]
    counts = tuple(len(lengths) for lengths, _ in axes)
    places = np.ravel_multi_index(np.ix_(*(inverse for _, inverse in axes)), counts)
    manifest = array.manifest.loaded()
    variant = manifest.variant
    combined = places if variant is None else places + variant.astype(np.int64) * math.prod(counts)
    used, numbers = np.unique(combined, return_inverse=True)
    if used.size > MAX_VARIANTS:
        raise UnsupportedError("its chunks are stored larger than they are, and at too many different shapes")
    found: list[Encoding] = []
    for one in used.tolist():
        number, place = divmod(one, math.prod(counts))
        index = np.unravel_index(place, counts)
        shape = tuple(int(lengths[i]) for (lengths, _), i in zip(axes, index, strict=True))
        found.append(_stored(encodings[number], shape))
    renumbered = numbers.reshape(manifest.grid_shape).astype(np.uint16)
    return tuple(found), replace(manifest, variant=renumbered)


def _cropped_alike(pieces: Sequence[_Piece | None]) -> list[_Piece | None]:
    """Where chunks of some files are cropped, those of others are too if that makes them all the same."""
    shapes = {encoding.chunk_shape for piece in pieces if piece for encoding in piece.encodings} - {None}
    if len(shapes) != 1:
        return list(pieces)
    (shape,) = shapes

    def alike(piece: _Piece | None) -> _Piece | None:
        if piece is None or piece.is_trimmed or stored_shape(piece.array) != shape:
            return piece
        return replace(piece, encodings=tuple(_stored(encoding, shape) for encoding in piece.encodings))

    return [alike(piece) for piece in pieces]


def _stored(encoding: Encoding, shape: Shape | None) -> Encoding:
    return encoding if shape is None or encoding.chunk_shape is not None else replace(encoding, chunk_shape=shape)


def _check_shapes(arrays: Sequence[VirtualArray], axis: int) -> None:
    first = arrays[0]
    for array in arrays[1:]:
        if len(array.shape) != len(first.shape):
            raise UnsupportedError(f"it has {len(first.shape)} axes in one file and {len(array.shape)} in another")
        sizes = {(a, b) for i, (a, b) in enumerate(zip(first.shape, array.shape, strict=True)) if i != axis and a != b}
        if sizes:
            one, other = next(iter(sizes))
            raise UnsupportedError(f"its size beside the axis that is joined differs: {one} and {other} elements")


def _fits(array: VirtualArray, lengths: Lengths, axis: int, grid: JoinedGrid) -> bool:
    """Whether chunks decode to what the joined grid asks for."""
    if not np.array_equal(stored_lengths(array, axis), lengths):
        return False
    shape = stored_shape(array)
    return shape is None or _beside(shape, axis) == _beside(decoded_shape(grid.grid, axis, 1), axis)


def _beside(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _trimmed(
    array: VirtualArray, encodings: Sequence[Encoding], lengths: Lengths, axis: int, grid: JoinedGrid
) -> Manifest | None:
    """The chunks without their padding, if it is a byte range: uncompressed, and along the axis that varies slowest."""
    shape = stored_shape(array)
    if shape is None or not all(encoding.is_raw and encoding.chunk_shape is None for encoding in encodings):
        return None
    if math.prod(shape[:axis]) != 1 or _beside(shape, axis) != _beside(decoded_shape(grid.grid, axis, 1), axis):
        return None
    item = array.dtype.itemsize * math.prod(shape[axis + 1 :])
    if len({encoding.dtype.itemsize for encoding in encodings} | {array.dtype.itemsize}) != 1:
        return None
    manifest = array.manifest.loaded()
    sizes = np.expand_dims(lengths * item, tuple(range(1, manifest.url_id.ndim - axis)))
    wanted = np.broadcast_to(sizes, manifest.grid_shape)
    length = np.minimum(manifest.length, wanted.astype(manifest.length.dtype))
    inline = {position: data[: int(wanted.reshape(-1)[position])] for position, data in manifest.inline.items()}
    return replace(manifest, length=length, inline=inline)


def _distinct(pieces: Sequence[_Piece]) -> list[Encoding]:
    return list({encoding.key: encoding for piece in pieces for encoding in piece.encodings}.values())


def _filled(piece: _Piece, target: Target, table: _Table, axis: int) -> tuple[_Piece, NDArray[np.uint16]]:
    """A piece whose missing chunks read as its file has them, and the numbers of its variants."""
    numbers = [table.number(encoding, piece.part.file) for encoding in piece.encodings]
    fill = target.fill_of(piece.encodings[0], piece.array.metadata.fill_value)
    if fill == target.fill_value or piece.manifest.is_full:
        return piece, np.array(numbers, np.uint16)
    encoding, data = _constant(piece, axis)
    constant = table.number(encoding, piece.part.file)
    positions = missing_positions(piece.manifest)
    variant = np.zeros(piece.manifest.grid_shape, np.uint16) if (v := piece.manifest.variant) is None else v.copy()
    variant.reshape(-1)[positions] = len(numbers)
    manifest = replace(with_inline(piece.manifest, positions, data), variant=variant)
    return replace(piece, manifest=manifest), np.array([*numbers, constant], np.uint16)


def _constant(piece: _Piece, axis: int) -> tuple[Encoding, bytes]:
    """A chunk that holds nothing but the file's fill value, large enough for every place, and how it is encoded."""
    base = piece.encodings[0]
    if base.dtype.hasobject:
        raise UnsupportedError("chunks are missing, and files fill them with different texts")
    shape = stored_shape(piece.array) or decoded_shape(
        piece.array.metadata.chunk_grid, axis, int(stored_lengths(piece.array, axis).max())
    )
    values = constant_chunk(piece.array.metadata.fill_value, base.dtype, math.prod(shape))
    stored = values.astype(values.dtype.newbyteorder("<")).tobytes()
    codecs: Codecs = (
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "zstd", "configuration": {"level": 1, "checksum": False}},
    )
    return replace(base, codecs=codecs, chunk_shape=shape), bytes(Zstd(level=1).encode(stored))


def _manifests(
    filled: Sequence[tuple[_Piece, NDArray[np.uint16]] | None], grid: JoinedGrid, axis: int
) -> tuple[list[Manifest], list[NDArray[np.uint16]]]:
    manifests: list[Manifest] = []
    numbers: list[NDArray[np.uint16]] = []
    whole = grid.grid.grid_shape
    for one, lengths in zip(filled, grid.lengths, strict=True):
        if one is None:
            manifests.append(Manifest.missing((*whole[:axis], len(lengths), *whole[axis + 1 :])))
            numbers.append(np.zeros(1, np.uint16))
        else:
            manifests.append(one[0].manifest)
            numbers.append(one[1])
    return manifests, numbers


def _metadata(first: ArrayMetadata, grid: JoinedGrid, target: Target, codecs: Codecs) -> ArrayMetadata:
    attributes, types = dict(first.attributes), dict(first.attribute_types)
    encoding = {name: value for name, value in first.encoding.items() if name != "fixed_axes"}
    if target.is_unpacked:
        attributes = {name: value for name, value in attributes.items() if name not in PACKING}
        types = {name: value for name, value in types.items() if name not in PACKING}
        encoding = {}
    return replace(
        first,
        data_type=target.data_type,
        fill_value=target.fill_value,
        chunk_grid=grid.grid,
        codecs=tuple(dict(codec) for codec in codecs),
        attributes=attributes,
        attribute_types=types,
        encoding=encoding,
    )


def _has_lost(arrays: Sequence[VirtualArray], target: Target) -> bool:
    return target.is_unpacked and any(name in array.metadata.attributes for array in arrays for name in PACKING)
