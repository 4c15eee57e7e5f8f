"""A codec pipeline, prepared for decoding many chunks.

`PlainChain` knows the pipelines that most files have: numbers, perhaps shuffled, and codecs of `bytes_steps`. The
others are `zarr_chain.ZarrChain`'s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import JSON, Shape
from virtualzarr_refs.codecs.bytes_steps import Data, Decode, step_of
from virtualzarr_refs.direct.groups import Span
from virtualzarr_refs.errors import DecodeError

type Codecs = Sequence[Mapping[str, JSON]]
type Values = NDArray[Any]
type Index = tuple[Any, ...]


class Chain(Protocol):
    """Decodes the chunks of one array, or of one variant."""

    def decode(self, data: Data, shape: Shape) -> Values:
        """The values of a chunk of `shape`, in elements; perhaps not in native byte order.

        Raises
        ------
        DecodeError
            If the bytes do not decode to that shape. Codecs may raise other errors.
        """
        ...

    def place(self, data: Data, shape: Shape, inside: Index, target: Values) -> None:
        """Write the part `inside` of a chunk to `target`, a view that is contiguous along its last axis."""
        ...


@dataclass(frozen=True, slots=True)
class PlainChain:
    """Numbers of one type, perhaps shuffled, perhaps compressed.

    Parameters
    ----------
    dtype : numpy.dtype
        As stored.
    steps : tuple of (callable, int)
        Codecs from bytes to bytes in order of decoding, each with the bytes that it adds to those of the chunk.
    shuffled : int
        Length of the elements whose bytes were shuffled, in bytes; 0 if none were.
    """

    dtype: np.dtype[Any]
    steps: tuple[tuple[Decode, int], ...] = ()
    shuffled: int = 0

    @classmethod
    def of(cls, codecs: Codecs, dtype: np.dtype[Any]) -> Self | None:
        """The chain for codecs in order of encoding, or None if it takes zarr to decode them."""
        stored = _stored_type(codecs[0], dtype)
        shuffled = _shuffled(codecs[1]) if len(codecs) > 1 else 0
        steps = _steps(codecs[2 if shuffled else 1 :])
        return None if stored is None or steps is None else cls(stored, steps, shuffled)

    def decode(self, data: Data, shape: Shape) -> Values:
        """See `Chain.decode`."""
        count = math.prod(shape) * self.dtype.itemsize
        cells = np.frombuffer(self._unpacked(data, count), np.uint8)
        if self.shuffled:
            cells = np.ascontiguousarray(self._planes(cells, (1,)).swapaxes(1, 2)).reshape(-1)
        return cells.view(self.dtype).reshape(shape)

    def decode_many(self, span: Span, shape: Shape) -> Values:
        """The values of equal chunks, along a first axis."""
        cells = self._unpacked_rows(span, math.prod(shape) * self.dtype.itemsize)
        if self.shuffled:
            cells = self._planes(cells, cells.shape[:1]).swapaxes(1, 2)
        return np.ascontiguousarray(cells).reshape(-1).view(self.dtype).reshape(-1, *shape)

    def place(self, data: Data, shape: Shape, inside: Index, target: Values) -> None:
        """See `Chain.place`. Unshuffles into place, one byte of all elements after the other."""
        if self.shuffled != self.dtype.itemsize or not target.ndim:
            target[...] = self.decode(data, shape)[inside]
            return
        cells = np.frombuffer(self._unpacked(data, math.prod(shape) * self.dtype.itemsize), np.uint8)
        planes = cells.reshape(self.shuffled, *shape)
        places = _bytes_of(target)
        for byte, place in enumerate(_byte_order(self.dtype)):
            places[..., place] = planes[byte][inside]

    def _planes(self, cells: NDArray[np.uint8], rows: Shape) -> NDArray[np.uint8]:
        return cells.reshape(*rows, self.shuffled, -1)

    def _unpacked_rows(self, span: Span, count: int) -> NDArray[np.uint8]:
        if not self.steps and (span.lengths == count).all():
            return span.rows(count)
        joined = b"".join([self._unpacked(chunk, count) for chunk in span.chunks()])
        return np.frombuffer(joined, np.uint8).reshape(-1, count)

    def _unpacked(self, data: Data, count: int) -> Data:
        for decode, extra in self.steps:
            data = decode(data, count + extra)
        if len(data) != count:
            raise DecodeError(f"a chunk decodes to {len(data)} bytes instead of {count}")
        return data


def _bytes_of(values: Values) -> NDArray[np.uint8]:
    """The bytes of each element, along a last axis of their own."""
    strides = (*values.strides, 1)
    flat = values.view(np.uint8)
    return np.lib.stride_tricks.as_strided(flat, (*values.shape, values.itemsize), strides)


def _byte_order(dtype: np.dtype[Any]) -> list[int]:
    """For each byte of a stored number where it stands in the native one."""
    if dtype.isnative:
        return list(range(dtype.itemsize))
    size = {"c": dtype.itemsize // 2, "U": 4}.get(dtype.kind, dtype.itemsize)
    return [byte // size * size + size - 1 - byte % size for byte in range(dtype.itemsize)]


_KINDS = "biufcmMSU"


def _stored_type(codec: Mapping[str, JSON], dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    if codec["name"] != "bytes" or dtype.kind not in _KINDS or not dtype.itemsize:
        return None
    configuration = cast("Mapping[str, JSON]", codec.get("configuration") or {})
    endian = configuration.get("endian")
    if endian is None and dtype.str[0] != "|":  # zarr refuses it
        return None
    return dtype.newbyteorder(">" if endian == "big" else "<")


def _shuffled(codec: Mapping[str, JSON]) -> int:
    """The length of the elements that were shuffled, if the codec is the one that does it."""
    configuration = cast("Mapping[str, int]", codec.get("configuration") or {})
    return configuration.get("elementsize", 4) if codec["name"] == "numcodecs.shuffle" else 0


def _steps(codecs: Codecs) -> tuple[tuple[Decode, int], ...] | None:
    """The steps for codecs in order of encoding, or None if one is unknown or what it decodes to is."""
    steps: list[tuple[Decode, int]] = []
    extra: int | None = 0
    for codec in codecs:
        step = step_of(codec)
        if step is None or extra is None:
            return None
        steps.append((step.decode, extra))
        extra = None if step.growth is None else extra + step.growth
    return tuple(reversed(steps))
