"""Reading kerchunk reference sets in JSON, of specification versions 0 and 1 and of either Zarr format."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.references.documents import DOCUMENT_NAMES, is_document_key, read_documents
from virtualzarr_refs.references.generators import generate
from virtualzarr_refs.references.nodes import build_group, parse_nodes, split_by_array
from virtualzarr_refs.references.sidecar import TEMPLATE, sidecar_folder
from virtualzarr_refs.references.source_columns import read_columns
from virtualzarr_refs.references.templates import Templates
from virtualzarr_refs.references.trust import Trust, as_prefixes
from virtualzarr_refs.references.urls import SetUrls, folder_of
from virtualzarr_refs.sources import open_source

_DOCUMENT_NAMES = tuple(DOCUMENT_NAMES)


MAX_RATIO = 200
"""Characters of a set for each byte of a compressed file; more is taken for an attack on memory."""

MAX_SMALL_TEXT = 1 << 26
"""Characters that any compressed file may hold."""


@dataclass(frozen=True, slots=True)
class _References:
    """What a set says, before any of it is understood."""

    values: Mapping[str, object]
    templates: Templates = field(default_factory=Templates)
    generators: object = ()
    sources: object = None


def read_json(
    url: str, *, storage_options: Mapping[str, object] | None, allow: Iterable[str] | None, mask_fill_value: bool
) -> VirtualGroup:
    """Read a reference set from a file; see `virtualzarr_refs.references.open_refs`."""
    references = _parse_version(_parse_json(read_file(url, storage_options)))
    if TEMPLATE in references.templates.texts:
        beside = sidecar_folder(url)
        references = replace(references, templates=Templates({**references.templates.texts, TEMPLATE: beside}))
        allow = None if allow is None else [*as_prefixes(allow), beside]
    urls = SetUrls(folder_of(url), Trust.in_set_at(url, allow), references.templates, storage_options)
    return _build(references, urls, mask_fill_value=mask_fill_value)


def read_mapping(
    document: Mapping[str, object],
    *,
    storage_options: Mapping[str, object] | None,
    allow: Iterable[str] | None,
    mask_fill_value: bool,
) -> VirtualGroup:
    """Read a reference set that is parsed already; see `virtualzarr_refs.references.open_refs`."""
    references = _parse_version(document)
    urls = SetUrls(folder_of("set"), Trust.in_set_at(None, allow), references.templates, storage_options)
    return _build(references, urls, mask_fill_value=mask_fill_value)


def read_file(url: str, storage_options: Mapping[str, object] | None) -> bytes:
    """The bytes of a set, decompressed if they are compressed.

    Raises
    ------
    ReferenceSetError
        If they cannot be decompressed.
    SourceError
        If they cannot be read.
    """
    source = open_source(url, storage_options)
    try:
        data = bytes(source.read([ByteRange(0, source.identity().size)])[0])
    finally:
        source.close()
    decompress = next((function for magic, function in _COMPRESSIONS.items() if data.startswith(magic)), bytes)
    return decompress(data)


def _gunzip(data: bytes) -> bytes:
    inflate = zlib.decompressobj(wbits=31)
    try:
        text = inflate.decompress(data, _max_text(data) + 1)
    except zlib.error as error:
        raise ReferenceSetError(f"the file begins as gzip and cannot be decompressed: {error}") from error
    if not inflate.eof and len(text) <= _max_text(data):
        raise ReferenceSetError("the file begins as gzip and was cut short")
    return _require_text(data, text)


def _unzstd(data: bytes) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  slow to import

    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            return _require_text(data, stream.read(_max_text(data) + 1))
    except OSError as error:
        raise ReferenceSetError(f"the file begins as zstd and cannot be decompressed: {error}") from error


def _max_text(data: bytes) -> int:
    return MAX_SMALL_TEXT + MAX_RATIO * len(data)


def _require_text(data: bytes, text: bytes) -> bytes:
    if len(text) > _max_text(data):
        raise ReferenceSetError(
            f"{len(data)} bytes decompress to more than {_max_text(data)}, which is taken for an attack; "
            "decompress the file by hand if you trust it"
        )
    return text


_COMPRESSIONS: Mapping[bytes, Callable[[bytes], bytes]] = {b"\x1f\x8b": _gunzip, b"\x28\xb5\x2f\xfd": _unzstd}


def _parse_json(data: bytes) -> Mapping[str, object]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ReferenceSetError(f"the file is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ReferenceSetError("the file is not a JSON object with references")
    return cast("dict[str, object]", document)


def _parse_version(document: Mapping[str, object]) -> _References:
    if "version" not in document:
        return _References(document)
    version, values = document["version"], document.get("refs", {})
    if type(version) is not int or version != 1:
        raise ReferenceSetError(f"version {version!r} of the reference specification is not known; 0 and 1 are")
    if not isinstance(values, Mapping):
        raise ReferenceSetError(f'"refs" is not a JSON object: {values!r:.80}')
    templates = Templates.parse(document.get("templates", {}))
    values = cast("Mapping[str, object]", values)
    return _References(values, templates, document.get("gen", ()), document.get("sources"))


def _build(references: _References, urls: SetUrls, *, mask_fill_value: bool) -> VirtualGroup:
    documents: dict[str, object] = {}
    chunks: dict[str, object] = {}
    for key, value in references.values.items():
        if key.endswith(_DOCUMENT_NAMES) and is_document_key(key):
            documents[key] = value
        else:
            chunks[key] = value
    for key, reference in generate(references.generators, references.templates):
        if key in chunks or is_document_key(key):
            raise ReferenceSetError(f"a generator makes a second reference for {key!r}")
        chunks[key] = reference
    nodes = parse_nodes(read_documents(documents, urls), mask_fill_value=mask_fill_value)
    group = build_group(nodes, split_by_array(chunks.items(), nodes), urls)
    return replace(group, sources=read_columns(references.sources, urls))
