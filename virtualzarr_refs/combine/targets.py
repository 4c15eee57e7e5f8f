"""What an array is to hold when files that differ are put together: its type, and what is missing in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.codecs.names import PACKING
from virtualzarr_refs.codecs.unpacking import unpack, unpacked_type
from virtualzarr_refs.combine.encodings import Encoding
from virtualzarr_refs.data_types import decode_scalar, encode_data_type, encode_scalar
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray


@dataclass(frozen=True, slots=True)
class Target:
    """Type and fill value of a joined array.

    Parameters
    ----------
    data_type : JSON
        As in ``zarr.json``.
    fill_value : JSON
        As in ``zarr.json``.
    is_unpacked : bool
        Whether values are what CF's packing stands for, and not what files hold.
    """

    data_type: JSON
    fill_value: JSON
    is_unpacked: bool

    def fill_of(self, encoding: Encoding, fill_value: JSON) -> JSON:
        """What a missing chunk of a file holds, in the terms of the joined array."""
        if not self.is_unpacked:
            return fill_value
        stored = np.asarray([decode_scalar(fill_value, encoding.dtype)], encoding.dtype)
        dtype = np.dtype(str(self.data_type))
        return encode_scalar(unpack(stored, encoding.attributes()).astype(dtype)[0], dtype)


def choose_target(arrays: Sequence[VirtualArray], encodings: Sequence[Encoding], *, is_partly_absent: bool) -> Target:
    """What holds the values of all files, as xarray would have it.

    Parameters
    ----------
    arrays : sequence of VirtualArray
        Of the files that have the variable.
    encodings : sequence of Encoding
        The distinct ones of their types and packings.
    is_partly_absent : bool
        Whether other files lack it, whose part is to read as missing.

    Raises
    ------
    UnsupportedError
        If no type holds the values, or what is missing.
    """
    first = arrays[0].metadata
    kinds = {json.dumps([e.data_type, e.packing, e.types], sort_keys=True): e for e in encodings}
    if len(kinds) == 1:
        (only,) = kinds.values()
        if not is_partly_absent:
            return Target(first.data_type, first.fill_value, is_unpacked=_is_unpacked(arrays[0], only))
        missing = _missing_value(only)
        if missing is not None:
            return Target(first.data_type, missing, is_unpacked=_is_unpacked(arrays[0], only))
    return _unpacked_target(list(kinds.values()), is_partly_absent=is_partly_absent)


def _is_unpacked(array: VirtualArray, encoding: Encoding) -> bool:
    """Whether an array is the outcome of an earlier joining, its packing gone into its variants."""
    own = {name for name in PACKING if name in array.metadata.attributes}
    return bool(encoding.packing) and not own


def _missing_value(encoding: Encoding) -> JSON:
    """What reads as missing without another type; None if nothing does."""
    attributes, dtype = encoding.attributes(), encoding.dtype
    for name in ("_FillValue", "missing_value"):
        value = np.asarray(attributes.get(name, ()))
        if value.size:
            return encode_scalar(_as_type(value.reshape(-1)[0], dtype), dtype)
    return encode_scalar(dtype.type("nan"), dtype) if dtype.kind in "fc" else None


def _as_type(value: Any, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401  a scalar
    return np.asarray(value).astype(dtype)[()]


def _unpacked_target(encodings: Sequence[Encoding], *, is_partly_absent: bool) -> Target:
    types = [unpacked_type(encoding.dtype, encoding.attributes()) for encoding in encodings]
    try:
        dtype = np.result_type(*types)
    except TypeError as error:
        names = sorted({str(type_) for type_ in types})
        raise UnsupportedError(f"no type holds the values of all files: {', '.join(names)}") from error
    if is_partly_absent:
        dtype = _with_missing(dtype)
    if dtype.hasobject or dtype.kind not in "biufc":
        raise UnsupportedError("values of these types cannot be put together", feature=f"NumPy type {dtype}")
    fill = dtype.type("nan") if dtype.kind in "fc" else dtype.type(0)
    return Target(encode_data_type(dtype), encode_scalar(fill, dtype), is_unpacked=True)


def _with_missing(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that xarray promotes to where values are missing."""
    if dtype.kind in "fc":
        return dtype
    if dtype.kind in "iu":
        return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)
    raise UnsupportedError(
        "some files lack the variable, and its type has no missing value; drop it, or these files",
        feature=f"NumPy type {dtype}",
    )


def constant_chunk(fill_value: JSON, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """The values of a chunk that holds one value throughout."""
    return np.full(count, decode_scalar(fill_value, dtype), dtype)
