"""``zarr.json`` documents of arrays and groups, as typed records.

Zarr v3 core, "Metadata". What Zarr has no place for is kept in one extension member, which readers may ignore:

.. code-block:: json

    "virtualzarr_refs": {"must_understand": false, "attribute_types": {"scale_factor": "<f4"}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from virtualzarr_refs.attributes import decode_attributes
from virtualzarr_refs.chunk_grid import (
    JSON,
    ChunkGrid,
    ChunkKeyEncoding,
    Shape,
    parse_chunk_grid,
    parse_chunk_key_encoding,
)
from virtualzarr_refs.data_types import decode_data_type, decode_scalar
from virtualzarr_refs.errors import ReferenceSetError

EXTENSION = "virtualzarr_refs"
"""Name of the extension member of ``zarr.json`` that is ours."""


MAX_RANK = 64
"""Axes that an array of NumPy may have."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A node that a scan left out.

    Parameters
    ----------
    path : str
        Path of the node in the file.
    reason : str
        Why it was left out, and what to do about it.
    loses_data : bool
        False for what carries no data of its own, such as the placeholder of a dimension without coordinate.
    """

    path: str
    reason: str
    loses_data: bool = True


@dataclass(frozen=True)
class ArrayMetadata:
    """The ``zarr.json`` of an array.

    Parameters
    ----------
    data_type : JSON
        Zarr v3 data type.
    chunk_grid : ChunkGrid
        Carries the shape of the array, in elements.
    fill_value : JSON
        What missing chunks hold, in Zarr's JSON form. Not CF's ``_FillValue``, which is an attribute.
    codecs : tuple of dict
        The codec pipeline in order of encoding.
    attributes : mapping
        Plain JSON; their types are in `attribute_types`.
    dimension_names : tuple of (str or None), optional
        One for each axis.
    chunk_key_encoding : ChunkKeyEncoding
        How chunks are named.
    attribute_types : mapping
        NumPy types of attributes that JSON cannot tell apart.
    encoding : mapping
        Facts about how the source stores the array, for information only: why its values were
        read at scan time (``materialised``), names of filters, and the like.

    Raises
    ------
    ReferenceSetError
        If the data type, the fill value or the names do not fit together.
    """

    data_type: JSON
    chunk_grid: ChunkGrid
    fill_value: JSON
    codecs: tuple[dict[str, JSON], ...]
    attributes: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    dimension_names: tuple[str | None, ...] | None = None
    chunk_key_encoding: ChunkKeyEncoding = ChunkKeyEncoding()  # noqa: RUF009  frozen
    attribute_types: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    encoding: Mapping[str, JSON] = field(default_factory=dict[str, JSON])

    def __post_init__(self) -> None:
        decode_scalar(self.fill_value, self.dtype)
        if self.dimension_names is not None and len(self.dimension_names) != len(self.shape):
            raise ReferenceSetError(f"{len(self.dimension_names)} dimension names for an array of shape {self.shape}")

    @property
    def shape(self) -> Shape:
        """Shape of the array, in elements."""
        return self.chunk_grid.shape

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of the array in native byte order; ``object`` for strings of variable length."""
        return decode_data_type(self.data_type)

    def typed_attributes(self) -> dict[str, Any]:
        """The attributes with the NumPy types that the source gave them."""
        return decode_attributes(self.attributes, self.attribute_types, self.dtype)

    def to_json(self) -> dict[str, JSON]:
        """The parsed form of ``zarr.json``."""
        document: dict[str, JSON] = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.data_type,
            "chunk_grid": self.chunk_grid.to_json(),
            "chunk_key_encoding": self.chunk_key_encoding.to_json(),
            "fill_value": self.fill_value,
            "codecs": list(self.codecs),
            "attributes": dict(self.attributes),
        }
        if self.dimension_names is not None:
            document["dimension_names"] = list(self.dimension_names)
        return document | _extension(attribute_types=self.attribute_types, encoding=self.encoding)


@dataclass(frozen=True)
class GroupMetadata:
    """The ``zarr.json`` of a group.

    Parameters
    ----------
    attributes : mapping
        Plain JSON; their types are in `attribute_types`.
    attribute_types : mapping
        NumPy types of attributes that JSON cannot tell apart.
    unlimited_dimensions : tuple of str
        Dimensions that the source could extend.
    skipped : tuple of Skipped
        At the root: what the scan left out anywhere beneath.
    """

    attributes: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    attribute_types: Mapping[str, JSON] = field(default_factory=dict[str, JSON])
    unlimited_dimensions: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def typed_attributes(self) -> dict[str, Any]:
        """The attributes with the NumPy types that the source gave them."""
        return decode_attributes(self.attributes, self.attribute_types)

    def to_json(self) -> dict[str, JSON]:
        """The parsed form of ``zarr.json``."""
        skipped: list[JSON] = [{"path": s.path, "reason": s.reason, "loses_data": s.loses_data} for s in self.skipped]
        document: dict[str, JSON] = {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": dict(self.attributes),
        }
        return document | _extension(
            attribute_types=self.attribute_types,
            unlimited_dimensions=list(self.unlimited_dimensions),
            skipped=skipped,
        )


type NodeMetadata = ArrayMetadata | GroupMetadata


def encode_metadata(metadata: NodeMetadata) -> bytes:
    """The bytes of ``zarr.json``.

    Numbers that are not finite can only occur in attributes and are written as zarr-python writes them,
    as the tokens ``NaN`` and ``Infinity``. Text that UTF-8 cannot say (lone surrogates) is written in escapes.
    """
    document = metadata.to_json()
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(document, separators=(",", ":")).encode()


def same_metadata(a: NodeMetadata, b: NodeMetadata) -> bool:
    """Whether both say the same; unlike ``==``, NaN is the same as NaN."""
    return a == b or (type(a) is type(b) and _sorted_json(a) == _sorted_json(b))


def _sorted_json(metadata: NodeMetadata) -> str:
    return json.dumps(metadata.to_json(), sort_keys=True)


def decode_metadata(document: bytes | str) -> NodeMetadata:
    """Read a ``zarr.json``.

    Raises
    ------
    ReferenceSetError
        If it is not JSON, or not the document of a Zarr v3 array or group.
    """
    try:
        value = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise ReferenceSetError(f"a zarr.json is not JSON: {error}") from error
    return parse_metadata(value)


def parse_metadata(value: object) -> NodeMetadata:
    """Read a parsed ``zarr.json``; see `decode_metadata`."""
    if not isinstance(value, dict):
        raise ReferenceSetError("a zarr.json is not a JSON object")
    document = cast("dict[str, Any]", value)
    if document.get("zarr_format") != 3 or document.get("node_type") not in ("array", "group"):
        raise ReferenceSetError("a zarr.json does not describe a Zarr v3 array or group")
    try:
        return _PARSERS[document["node_type"]](document)
    except ReferenceSetError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReferenceSetError(f"a zarr.json lacks or misuses a member: {error!r}") from error


def _parse_array(document: dict[str, Any]) -> ArrayMetadata:
    _check_members(document, _ARRAY_MEMBERS)
    if document.get("storage_transformers"):
        raise ReferenceSetError("storage transformers are not supported")
    extension = document.get(EXTENSION, {})
    shape = document["shape"]
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in cast("list[object]", shape)):
        raise ReferenceSetError(f"the shape {shape!r:.200} is not a list of lengths")
    if len(cast("list[int]", shape)) > MAX_RANK:
        raise ReferenceSetError(f"an array has {len(cast('list[int]', shape))} axes; NumPy knows {MAX_RANK}")
    names = document.get("dimension_names")
    return ArrayMetadata(
        data_type=document["data_type"],
        chunk_grid=parse_chunk_grid(document["chunk_grid"], tuple(cast("list[int]", shape))),
        fill_value=document["fill_value"],
        codecs=_parse_codecs(document["codecs"]),
        attributes=dict(document.get("attributes", {})),
        dimension_names=None if names is None else _parse_names(names),
        chunk_key_encoding=parse_chunk_key_encoding(document["chunk_key_encoding"]),
        attribute_types=dict(extension.get("attribute_types", {})),
        encoding=dict(extension.get("encoding", {})),
    )


def _parse_codecs(value: object) -> tuple[dict[str, JSON], ...]:
    members = cast("list[str | dict[str, JSON]]", value) if isinstance(value, list) else []
    codecs = [cast("dict[str, JSON]", {"name": c}) if isinstance(c, str) else dict(c) for c in members]
    if not codecs or not all(isinstance(codec.get("name"), str) for codec in codecs):
        raise ReferenceSetError(f"the codecs {value!r} are not a list of codecs")
    return tuple(codecs)


def _parse_names(value: object) -> tuple[str | None, ...]:
    if isinstance(value, list):
        names = cast("list[object]", value)
        if all(isinstance(name, str | None) for name in names):
            return tuple(cast("list[str | None]", names))
    raise ReferenceSetError(f"the dimension names {value!r} are not a list of names")


def _parse_group(document: dict[str, Any]) -> GroupMetadata:
    _check_members(document, _GROUP_MEMBERS)
    extension = document.get(EXTENSION, {})
    return GroupMetadata(
        attributes=dict(document.get("attributes", {})),
        attribute_types=dict(extension.get("attribute_types", {})),
        unlimited_dimensions=tuple(extension.get("unlimited_dimensions", ())),
        skipped=tuple(Skipped(**record) for record in extension.get("skipped", ())),
    )


_PARSERS = {"array": _parse_array, "group": _parse_group}

_GROUP_MEMBERS = {"zarr_format", "node_type", "attributes", "consolidated_metadata"}
_ARRAY_MEMBERS = {
    "zarr_format", "node_type", "attributes", "shape", "data_type", "chunk_grid", "chunk_key_encoding",
    "fill_value", "codecs", "dimension_names", "storage_transformers",
}  # fmt: skip


def _check_members(document: Mapping[str, Any], known: set[str]) -> None:
    """Refuse what we might read wrongly: members that are unknown and must be understood."""
    for name in document.keys() - known:
        member = document[name]
        if not isinstance(member, Mapping) or cast("Mapping[str, object]", member).get("must_understand") is not False:
            raise ReferenceSetError(f"the member {name!r} of a zarr.json is not known and must be understood")


def _extension(**members: JSON | Mapping[str, JSON]) -> dict[str, JSON]:
    present = {name: cast("JSON", value) for name, value in members.items() if value}
    return {EXTENSION: {"must_understand": False, **present}} if present else {}
