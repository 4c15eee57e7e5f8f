"""Metadata documents of Zarr v3 (``zarr.json``) as those of Zarr v2 (``.zarray``, ``.zgroup``, ``.zattrs``).

Zarr v2 core, "Metadata". What Zarr v2 has no place for goes into an extra member ``virtualzarr_refs`` of ``.zarray``
and ``.zgroup``, which other readers ignore, so that nothing is lost in a set that is read back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from virtualzarr_refs.attributes import FILL_VALUE, plain_fill_value
from virtualzarr_refs.chunk_grid import JSON, RegularGrid
from virtualzarr_refs.data_types import decode_scalar
from virtualzarr_refs.errors import NotRepresentableError
from virtualzarr_refs.metadata import EXTENSION, ArrayMetadata, GroupMetadata
from virtualzarr_refs.references.zarr_v2_codecs import ZARR_V2, Codec, Configuration, serialized_order, write_pipeline
from virtualzarr_refs.references.zarr_v2_reader import DIMENSIONS
from virtualzarr_refs.references.zarr_v2_types import (
    is_zero,
    read_dtype,
    read_fill_value,
    write_dtype,
    write_fill_value,
)


@dataclass(frozen=True, slots=True)
class _Encoding:
    """How chunks are encoded, as a ``.zarray`` says it.

    Parameters
    ----------
    dtype : numpy.dtype
        In the byte order it is stored in.
    order : {"C", "F"}
        Of the elements in a chunk.
    filters, compressor : list of dict, dict or None
        Codecs by their numcodecs id.
    """

    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    filters: Sequence[Configuration]
    compressor: Configuration | None = None


def write_array(metadata: ArrayMetadata, *, has_missing: bool) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """The ``.zarray`` and the ``.zattrs`` of an array.

    Parameters
    ----------
    metadata : ArrayMetadata
        Of the array.
    has_missing : bool
        Whether any of its chunks is missing.

    Raises
    ------
    NotRepresentableError
        If Zarr v2 cannot say the same; the message is the reason, fit to follow the name of the array.
    """
    grid = metadata.chunk_grid
    if not isinstance(grid, RegularGrid):
        raise NotRepresentableError("its chunks differ in length (a rectilinear grid)")
    encoding = _encoding(metadata)
    fill, extension = _write_fill(metadata, encoding.dtype, has_missing=has_missing)
    zarray: dict[str, JSON] = {
        "zarr_format": 2,
        "shape": list(metadata.shape),
        "chunks": list(grid.chunk_shape),
        "dtype": write_dtype(encoding.dtype),
        "fill_value": fill,
        "order": encoding.order,
        "filters": cast("JSON", list(encoding.filters)) or None,
        "compressor": encoding.compressor,
        "dimension_separator": ".",
    }
    return zarray | extension, _write_attributes(metadata)


def write_group(metadata: GroupMetadata) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """The ``.zgroup`` and the ``.zattrs`` of a group."""
    document = metadata.to_json()
    extension = {EXTENSION: document[EXTENSION]} if EXTENSION in document else {}
    return {"zarr_format": 2, **extension}, dict(metadata.attributes)


def _encoding(metadata: ArrayMetadata) -> _Encoding:
    first = metadata.codecs[0]
    if first["name"] == ZARR_V2:
        whole = cast("dict[str, Any]", first["configuration"])
        return _Encoding(read_dtype(whole["dtype"]), whole["order"], whole["codecs"])
    order, codecs = _split_transposition(metadata)
    dtype = metadata.dtype if metadata.dtype.kind == "O" else metadata.dtype.newbyteorder(serialized_order(codecs))
    pipeline = write_pipeline(codecs, dtype)
    if not pipeline or codecs[-1]["name"] in ("bytes", "vlen-utf8"):
        return _Encoding(dtype, order, pipeline)
    return _Encoding(dtype, order, pipeline[:-1], pipeline[-1])


def _split_transposition(metadata: ArrayMetadata) -> tuple[Literal["C", "F"], tuple[Codec, ...]]:
    """How the elements of a chunk are ordered, and the codecs that follow."""
    first, *rest = metadata.codecs
    if first["name"] != "transpose":
        return "C", metadata.codecs
    axes = cast("dict[str, Any]", first["configuration"])["order"]
    straight = list(range(len(metadata.shape)))
    if list(axes) == straight:
        return "C", tuple(rest)
    if list(axes) == straight[::-1]:
        return "F", tuple(rest)
    raise NotRepresentableError(f"its chunks are stored with their axes in the order {axes}")


def _write_fill(metadata: ArrayMetadata, dtype: np.dtype[Any], *, has_missing: bool) -> tuple[JSON, dict[str, JSON]]:
    """The fill value, and the extension that keeps what it cannot tell.

    Readers of Zarr v2 take the fill value to mean missing values too. So it is written only where it does mean
    them; else null is, which is zero to zarr-python and harmless where no chunk is missing.
    """
    fill: JSON = None
    if _masks(metadata):
        fill = write_fill_value(metadata.fill_value, dtype)
    elif has_missing and not is_zero(metadata.fill_value, dtype):
        raise NotRepresentableError(
            f"chunks are missing, and readers of Zarr v2 would take their value {metadata.fill_value!r} for no data"
        )
    extension = dict(cast("dict[str, JSON]", metadata.to_json().get(EXTENSION, {})))
    if FILL_VALUE in metadata.attributes:
        extension[FILL_VALUE] = metadata.attributes[FILL_VALUE]
    read_back = read_fill_value(fill, dtype)
    if json.dumps(read_back) != json.dumps(metadata.fill_value):  # as text, in which zeros have their sign
        extension["fill_value"] = metadata.fill_value
    return fill, {EXTENSION: extension} if extension else {}


def _masks(metadata: ArrayMetadata) -> bool:
    """Whether the fill value means a missing value: it is CF's, or there is none of CF's and it is NaN."""
    dtype = metadata.dtype
    fill = decode_scalar(metadata.fill_value, dtype)
    if FILL_VALUE not in metadata.attributes:
        return dtype.kind == "f" and bool(np.isnan(fill))
    mask = metadata.typed_attributes()[FILL_VALUE]
    return bool(np.array_equal(np.ravel(fill), np.ravel(mask), equal_nan=dtype.kind in "fc"))


def _write_attributes(metadata: ArrayMetadata) -> dict[str, JSON]:
    attributes = plain_fill_value(metadata.attributes, metadata.dtype)
    if metadata.dimension_names is None:
        return attributes
    if None in metadata.dimension_names:
        raise NotRepresentableError("some of its dimensions have no name")
    return {**attributes, DIMENSIONS: list(metadata.dimension_names)}
