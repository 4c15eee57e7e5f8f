"""The values of an Open-Meteo chunk: what its packed integers or bits stand for.

=============================  ==================  ===================================================
compression                    stored              value
=============================  ==================  ===================================================
pfor_delta2d_int16             int16               ``stored / scale_factor - add_offset``; 32767 is NaN
fpx_xor2d                      bits of a float32   the same, bit for bit
pfor_delta2d                   the integer itself  the same
pfor_delta2d, of floats        int32 or int64      as the first; the largest integer is NaN
pfor_delta2d_int16_logarithmic int16               ``10 ** (stored / scale_factor) - 1``; 32767 is NaN
=============================  ==================  ===================================================

The integers of a chunk are differences between rows along the last axis, and those a stream of differences.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import JSON, Shape
from virtualzarr_refs.codecs import open_meteo_numpy
from virtualzarr_refs.errors import UnsupportedError

NAME = "virtualzarr_refs.open_meteo"
"""Of the codec; here, so that scanning need not import zarr."""

INT16 = "pfor_delta2d_int16"
XOR = "fpx_xor2d"
OWN = "pfor_delta2d"
LOGARITHMIC = "pfor_delta2d_int16_logarithmic"

COMPRESSIONS = (INT16, XOR, OWN, LOGARITHMIC)
"""By the number that files have."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How the values of an array are stored.

    Parameters
    ----------
    compression : str
        One of the four names above.
    scale_factor : float
        What values were multiplied by; a divisor.
    add_offset : float
        What was added to values before.
    """

    compression: str
    scale_factor: float = 1.0
    add_offset: float = 0.0

    def normal(self, dtype: np.dtype[Any]) -> Packing:
        """The same packing without the numbers that this type of values does not use."""
        if self.compression == XOR or dtype.kind in "iu":
            return Packing(self.compression)
        return Packing(self.compression, self.scale_factor) if self.compression == LOGARITHMIC else self

    def to_json(self) -> dict[str, JSON]:
        """The codec's member of ``zarr.json``."""
        configuration: dict[str, JSON] = {
            "compression": self.compression,
            "scale_factor": self.scale_factor,
            "add_offset": self.add_offset,
        }
        return {"name": NAME, "configuration": configuration}


@cache
def stored_type(compression: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The integer type that values are stored as.

    Raises
    ------
    UnsupportedError
        If there is no such compression for this type of values, or it cannot be trusted.
    """
    try:
        return np.dtype(_STORED[compression][dtype.name])
    except KeyError:
        pass
    if (compression, dtype.name) == (XOR, "float64"):
        reason = "its only writer writes such data wrongly"
        raise UnsupportedError(reason, feature="compression fpx_xor2d of float64")
    raise UnsupportedError("there is no such data", feature=f"compression {compression} of {dtype.name}")


_INTEGERS = {name: name for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")}
_STORED = {
    INT16: {"float32": "int16"},
    XOR: {"float32": "uint32"},
    OWN: {**_INTEGERS, "float32": "int32", "float64": "int64"},
    LOGARITHMIC: {"float32": "int16"},
}


def decode_chunk(data: bytes, shape: Shape, dtype: np.dtype[Any], packing: Packing) -> NDArray[Any]:
    """Decode one chunk; see `decode_chunks`."""
    return decode_chunks([data], shape, dtype, packing)[0]


def decode_chunks(data: Sequence[bytes], shape: Shape, dtype: np.dtype[Any], packing: Packing) -> NDArray[Any]:
    """Decode chunks of one shape together, which costs much less than one by one if they are small.

    Parameters
    ----------
    data : sequence of bytes
        The chunks as stored.
    shape : tuple of int
        Of each chunk, in elements.
    dtype : numpy.dtype
        Of the values, in native byte order.
    packing : Packing
        How they are stored.

    Returns
    -------
    ndarray
        The chunks along the first axis, each of `shape`.

    Raises
    ------
    DecodeError
        If the bytes of one are not exactly those of such a chunk.
    UnsupportedError
        If there is no such compression for this type of values.
    """
    stored = stored_type(packing.compression, dtype)
    whole = (len(data), *shape)
    if not data or not math.prod(shape):
        return np.empty(whole, dtype)
    rows = math.prod(shape[:-1]), shape[-1]
    if packing.compression == XOR:
        return steps().bits(data, *rows).view(dtype).reshape(whole)
    if dtype.kind != "f":
        return steps().integers(data, *rows, stored).reshape(whole)
    if packing.compression == LOGARITHMIC:
        return _logarithmic(steps().integers(data, *rows, stored), dtype, packing.scale_factor).reshape(whole)
    scaling = dtype.type(packing.scale_factor), dtype.type(packing.add_offset)
    return steps().scaled(data, *rows, stored, scaling).reshape(whole)


@cache
def steps() -> Any:  # noqa: ANN401  a module
    """The module whose functions do the work: the compiled one where numba is installed."""
    try:
        if sys.byteorder == "little":
            return import_module("virtualzarr_refs.codecs.open_meteo_compiled")
    except (ImportError, RuntimeError):  # numba is missing, or has no folder to keep what it compiles
        pass
    return open_meteo_numpy


def _logarithmic(integers: NDArray[Any], dtype: np.dtype[Any], scale: float) -> NDArray[Any]:
    low, high = int(integers.min()), int(integers.max())
    if high - low >= integers.size:
        return _powers(integers, dtype, scale)
    powers = _powers(np.arange(low, high + 1, dtype=integers.dtype), dtype, scale)
    return powers[integers.astype(np.intp) - low]


def _powers(integers: NDArray[Any], dtype: np.dtype[Any], scale: float) -> NDArray[Any]:
    """Powers that are rounded once: NumPy's own of 32-bit numbers are off in the last bit more often."""
    exponents = open_meteo_numpy.linear(integers, (dtype.type(scale), dtype.type(0)))
    with np.errstate(all="ignore"):
        return np.power(10.0, exponents.astype(np.float64)).astype(dtype) - dtype.type(1)
