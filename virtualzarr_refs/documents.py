"""``zarr.json`` documents as they are served.

They differ from those of the hierarchy: each group's holds those of all nodes beneath it, because nothing can be listed
over HTTP; numbers that are not finite are strings, because no reader but Python's takes the tokens ``NaN`` and
``Infinity`` for JSON; and the reasons for what a scan left out, which may name files, stay behind.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import cast

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup
from virtualzarr_refs.metadata import NodeMetadata

_KEPT = 64
"""Documents that are kept once they are made."""

_REASON = "left out when the file was scanned; whoever runs the server sees the reason with vzrefs info"


class Documents:
    """The metadata documents of a hierarchy.

    Parameters
    ----------
    group : VirtualGroup
        The root of the hierarchy.
    consolidated : bool
        Whether a group's document holds those of the nodes beneath.
    """

    def __init__(self, group: VirtualGroup, *, consolidated: bool = True) -> None:
        self._group = group
        self._consolidated = consolidated
        self.find = lru_cache(_KEPT)(self._find)

    def _find(self, key: str) -> bytes | None:
        """The document under a key, or None if there is none."""
        folder, _, name = key.rpartition("/")
        if name != METADATA_KEY or self._group.resolve(key) is None:
            return None
        node = self._group[folder]
        document = served_document(node.metadata)
        if self._consolidated and isinstance(node, VirtualGroup):
            metadata: JSON = dict(_beneath(node))
            document["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": metadata}
        return _encode(document)


def _beneath(group: VirtualGroup) -> Iterator[tuple[str, JSON]]:
    nodes: Iterator[tuple[str, VirtualArray | VirtualGroup]] = group.walk()
    next(nodes)  # the group itself
    return ((path, served_document(node.metadata)) for path, node in nodes)


def served_document(metadata: NodeMetadata) -> dict[str, JSON]:
    """The document of one node."""
    if skipped := getattr(metadata, "skipped", ()):
        metadata = replace(metadata, skipped=tuple(replace(record, reason=_REASON) for record in skipped))
    return cast("dict[str, JSON]", _finite(metadata.to_json()))


def _finite(value: JSON) -> JSON:
    """The same with numbers that are not finite as strings, in the words that Zarr v3 has for fill values."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, dict):
        return {name: _finite(member) for name, member in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def _encode(document: dict[str, JSON]) -> bytes:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # lone surrogates, which only escapes can say
        return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
