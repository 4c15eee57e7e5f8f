"""Metadata documents of Zarr v2 (``.zarray``, ``.zgroup``, ``.zattrs``) as those of Zarr v3 (``zarr.json``).

Zarr v2 core, "Metadata".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from virtualzarr_refs.attributes import FILL_VALUE, encode_attributes
from virtualzarr_refs.chunk_grid import JSON, ChunkKeyEncoding
from virtualzarr_refs.data_types import decode_scalar, encode_data_type
from virtualzarr_refs.errors import ReferenceSetError, UnsupportedError, VirtualZarrError
from virtualzarr_refs.metadata import EXTENSION, NodeMetadata, parse_metadata
from virtualzarr_refs.references.zarr_v2_codecs import ZARR_V2, Codec, read_pipeline
from virtualzarr_refs.references.zarr_v2_types import read_dtype, read_fill_value

type Document = Mapping[str, Any]

DIMENSIONS = "_ARRAY_DIMENSIONS"
"""The attribute by which xarray names the dimensions of a Zarr v2 array."""


def read_array(zarray: Document, zattrs: Document, *, mask_fill_value: bool) -> tuple[NodeMetadata, ChunkKeyEncoding]:
    """Translate the documents of an array.

    Parameters
    ----------
    zarray, zattrs : mapping
        The parsed documents.
    mask_fill_value : bool
        Whether the fill value also stands for missing values, as xarray takes it to.

    Returns
    -------
    metadata, encoding : ArrayMetadata, ChunkKeyEncoding
        The encoding is how the set names the chunks; the metadata name them in the way of Zarr v3.

    Raises
    ------
    ReferenceSetError
        If the documents are malformed.
    UnsupportedError
        If Zarr v3 cannot say the same.
    """
    try:
        metadata = parse_metadata(_array_document(zarray, zattrs, mask_fill_value=mask_fill_value))
        separator = zarray.get("dimension_separator", ".")
        if separator not in (".", "/"):
            raise ReferenceSetError(f"the dimension separator {separator!r} is not known")
    except VirtualZarrError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReferenceSetError(f"a .zarray lacks or misuses a member: {error!r}") from error
    return metadata, ChunkKeyEncoding("v2", separator)


def read_group(zgroup: Document, zattrs: Document) -> NodeMetadata:
    """Translate the documents of a group. Raises ReferenceSetError if they are malformed."""
    document: dict[str, Any] = {"zarr_format": 3, "node_type": "group", "attributes": dict(zattrs)}
    if EXTENSION in zgroup:
        document[EXTENSION] = {**zgroup[EXTENSION], "must_understand": False}
    return parse_metadata(document)


def _array_document(zarray: Document, zattrs: Document, *, mask_fill_value: bool) -> dict[str, Any]:
    dtype = read_dtype(zarray["dtype"])
    extension = dict(zarray.get(EXTENSION, {}))
    fill = extension.pop("fill_value", None)
    names, attributes = _read_attributes(zarray, zattrs, dtype, mask_fill_value=mask_fill_value)
    if FILL_VALUE in extension:
        attributes[FILL_VALUE] = extension.pop(FILL_VALUE)
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": zarray["shape"],
        "data_type": encode_data_type(dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [n or 1 for n in zarray["chunks"]]}},
        "chunk_key_encoding": ChunkKeyEncoding().to_json(),
        "fill_value": read_fill_value(zarray.get("fill_value"), dtype) if fill is None else fill,
        "codecs": _read_codecs(zarray, dtype),
        "attributes": attributes,
        "dimension_names": names,
        EXTENSION: {**extension, "must_understand": False},
    }


def _read_codecs(zarray: Document, dtype: np.dtype[Any]) -> list[Codec]:
    compressor = zarray.get("compressor") or []
    codecs = [*(zarray.get("filters") or []), *([compressor] if isinstance(compressor, dict) else compressor)]
    if dtype.kind == "O" and "vlen-utf8" not in [codec["id"] for codec in codecs]:
        raise UnsupportedError("objects are read only where the codec vlen-utf8 makes them", feature="data type |O")
    order, rank = zarray.get("order", "C"), len(zarray["shape"])
    if order not in ("C", "F"):
        raise ReferenceSetError(f"the order {order!r} of a chunk is not known")
    axes = cast("JSON", [*range(rank)][::-1])
    transposed: list[Codec] = [{"name": "transpose", "configuration": {"order": axes}}]
    try:
        return [*(transposed if order == "F" and rank > 1 else []), *read_pipeline(codecs, dtype)]
    except UnsupportedError:
        if dtype.kind == "O":  # zarr-python takes no other codec than its own for strings
            raise
        return [_as_one_codec(codecs, zarray["dtype"], order)]


def _as_one_codec(codecs: Sequence[Mapping[str, JSON]], dtype: JSON, order: JSON) -> Codec:
    """All of Zarr v2's codecs as one of ours, for what cannot be said otherwise."""
    from virtualzarr_refs.codecs.zarr_v2 import check_available  # noqa: PLC0415  zarr is slow to import

    check_available(tuple(codec.get("id") for codec in codecs))
    configuration: dict[str, JSON] = {"dtype": dtype, "order": order, "codecs": [dict(codec) for codec in codecs]}
    return {"name": ZARR_V2, "configuration": configuration}


def _read_attributes(
    zarray: Document, zattrs: Document, dtype: np.dtype[Any], *, mask_fill_value: bool
) -> tuple[JSON, dict[str, JSON]]:
    attributes = dict(zattrs)
    dimensions = attributes.get(DIMENSIONS)
    names = None
    if isinstance(dimensions, list) and len(cast("list[JSON]", dimensions)) == len(zarray["shape"]):
        names = cast("JSON", attributes.pop(DIMENSIONS))
    if mask_fill_value and zarray.get("fill_value") is not None:
        attributes.setdefault(FILL_VALUE, zarray["fill_value"])
    if FILL_VALUE in attributes:
        attributes[FILL_VALUE] = _read_fill_attribute(attributes[FILL_VALUE], dtype)
    return names, encode_attributes(attributes, dtype)[0]


def _read_fill_attribute(value: Any, dtype: np.dtype[Any]) -> Any:  # noqa: ANN401  parsed JSON
    """CF's fill value, which writers put as a number, as the name of one, or as a list of one."""
    item: Any = value[0] if isinstance(value, list) and len(cast("list[Any]", value)) == 1 else value
    if dtype.kind in "fc" and isinstance(item, str | list):
        return decode_scalar(read_fill_value(item, dtype), dtype.newbyteorder("=")).item()
    return item
