"""The metadata documents of a reference set, by node, of either Zarr format and consolidated or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.hierarchy import METADATA_KEY, is_node_name
from virtualzarr_refs.references.chunk_values import decode_inline, malformed
from virtualzarr_refs.references.urls import SetUrls

ZARRAY, ZATTRS, ZGROUP, ZMETADATA = ".zarray", ".zattrs", ".zgroup", ".zmetadata"
DOCUMENT_NAMES = frozenset({METADATA_KEY, ZARRAY, ZATTRS, ZGROUP, ZMETADATA})
"""Last parts of the keys that are metadata; everything else is a chunk."""

MAX_DEPTH = 100
"""Groups within groups; more is taken for an attack on the stack."""

type Document = dict[str, object]
type Documents = dict[str, Document]


def is_document_key(key: str) -> bool:
    """Whether a key names a metadata document."""
    return key.rpartition("/")[2] in DOCUMENT_NAMES


def read_documents(values: Mapping[str, object], urls: SetUrls) -> dict[str, Documents]:
    """Parse metadata documents.

    Parameters
    ----------
    values : mapping of str to object
        What the set has under the keys of documents: their text, the parsed document, or a reference to it.
    urls : SetUrls
        Where references point.

    Returns
    -------
    dict of str to dict
        By path of the node, then by name of the document. Consolidated metadata fills in what has no document of
        its own.

    Raises
    ------
    ReferenceSetError
        If a document is malformed, or lies where no node can be; the message quotes the key.
    """
    nodes: dict[str, Documents] = {}
    consolidated: list[tuple[str, Document]] = []
    for key, value in values.items():
        path, _, name = key.rpartition("/")
        document = _parse(key, value, urls)
        if name == ZMETADATA:
            consolidated.append((path, document))
        else:
            nodes.setdefault(_checked(path, key), {})[name] = document
            consolidated += _inner_consolidated(path, name, document)
    for path, document in consolidated:
        _fill_in(nodes, path, document)
    return nodes


def _parse(key: str, value: object, urls: SetUrls) -> Document:
    if isinstance(value, dict):
        return cast("Document", value)
    data = _referenced(key, cast("list[object]", value), urls) if isinstance(value, list | tuple) else value
    try:
        document = json.loads(decode_inline(data, key))
    except (ValueError, RecursionError) as error:
        raise ReferenceSetError(f"the document {key!r} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ReferenceSetError(f"the document {key!r} is not a JSON object")
    return cast("Document", document)


def _referenced(key: str, reference: list[object], urls: SetUrls) -> bytes:
    url = urls.resolve(reference[0] if reference else None)
    bounds = reference[1:] or [0, urls.sizes([url])[url]]
    if len(bounds) != 2 or not all(type(n) is int and n >= 0 for n in bounds):
        raise malformed(key, reference)
    return urls.read(url, ByteRange(*cast("list[int]", bounds)))


def _checked(path: str, key: str) -> str:
    parts = path.split("/") if path else []
    if len(parts) > MAX_DEPTH or not all(map(is_node_name, parts)):
        raise ReferenceSetError(f"the document {key!r:.200} lies where no Zarr node can be")
    return path


def _inner_consolidated(path: str, name: str, document: Document) -> Iterator[tuple[str, Document]]:
    """The ``consolidated_metadata`` that zarr-python writes into the ``zarr.json`` of a group, as it is in Zarr v2."""
    inner = document.get("consolidated_metadata")
    if name != METADATA_KEY or not inner:
        return
    metadata = cast("Document", inner).get("metadata") if isinstance(inner, dict) else None
    if not isinstance(metadata, dict):
        raise ReferenceSetError(f"the consolidated metadata of {path or '/'!r} is malformed")
    entries = cast("dict[str, object]", metadata)
    yield path, {"metadata": {f"{node}/{METADATA_KEY}": entry for node, entry in entries.items()}}


def _fill_in(nodes: dict[str, Documents], path: str, document: Document) -> None:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise ReferenceSetError(f"the consolidated metadata of {path or '/'!r} is malformed")
    for key, entry in cast("dict[str, object]", metadata).items():
        full = f"{path}/{key}" if path else key
        parent, _, name = full.rpartition("/")
        if not isinstance(entry, dict) or name not in DOCUMENT_NAMES:
            raise ReferenceSetError(f"the consolidated metadata of {path or '/'!r} is malformed at {key!r}")
        nodes.setdefault(_checked(parent, full), {}).setdefault(name, cast("Document", entry))
