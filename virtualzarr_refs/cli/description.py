"""What ``vzrefs info`` says about a hierarchy."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.chunk_manifest import ChunkManifest
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.metadata import Skipped
from virtualzarr_refs.sources.redaction import redact

_BLOCK = 1 << 16
"""Chunks that are looked at together."""


@dataclass(frozen=True, slots=True)
class ReferenceCounts:
    """Chunks of a grid, by where they are: in a file, in the set itself, or nowhere."""

    virtual: int = 0
    inline: int = 0
    missing: int = 0

    @classmethod
    def of(cls, manifest: ChunkManifest) -> Self:
        """Count the chunks of one array."""
        inline = sum(len(block.inline) for _, block in manifest.blocks(_BLOCK)) if manifest.has_inline else 0
        virtual = manifest.count - inline
        return cls(virtual, inline, manifest.size - virtual - inline)

    def __add__(self, other: ReferenceCounts) -> ReferenceCounts:
        return ReferenceCounts(self.virtual + other.virtual, self.inline + other.inline, self.missing + other.missing)


@dataclass(frozen=True, slots=True)
class ArrayDescription:
    """An array.

    Parameters
    ----------
    path : str
        Of the array.
    shape : tuple of int
        In elements.
    dtype : str
        Zarr data type.
    dimensions : tuple of (str or None)
        Names of the axes.
    chunk_grid : object
        As in ``zarr.json``.
    grid_shape : tuple of int
        Chunks along each axis.
    codecs : tuple of object
        As in ``zarr.json``.
    references : ReferenceCounts
        Where the chunks are.
    stored_bytes : int
        Of all chunks.
    logical_bytes : int, optional
        Of all values; None for strings of variable length.
    materialised : str
        Why the values were read when the file was scanned; empty if they were not.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    dimensions: tuple[str | None, ...]
    chunk_grid: dict[str, JSON]
    grid_shape: tuple[int, ...]
    codecs: tuple[dict[str, JSON], ...]
    references: ReferenceCounts
    stored_bytes: int
    logical_bytes: int | None
    materialised: str

    @classmethod
    def of(cls, path: str, array: VirtualArray) -> Self:
        """Describe an array."""
        metadata, manifest = array.metadata, array.manifest
        size = None if array.dtype.hasobject else math.prod(array.shape) * array.dtype.itemsize
        return cls(
            path=path,
            shape=array.shape,
            dtype=_type_name(metadata.data_type, array.dtype),
            dimensions=metadata.dimension_names or (None,) * len(array.shape),
            chunk_grid=metadata.chunk_grid.to_json(),
            grid_shape=manifest.grid_shape,
            codecs=metadata.codecs,
            references=ReferenceCounts.of(manifest),
            stored_bytes=manifest.nbytes,
            logical_bytes=size,
            materialised=str(metadata.encoding.get("materialised", "")),
        )


def _type_name(data_type: JSON, dtype: np.dtype[Any]) -> str:
    """Zarr's name where it says all, else NumPy's."""
    return data_type if isinstance(data_type, str) else str(dtype)


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """A file that references point into, with their number and bytes."""

    url: str
    references: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class Description:
    """A hierarchy.

    Parameters
    ----------
    url : str
        What was opened.
    kind : {"reference set", "file"}
        What that is.
    groups : tuple of str
        Paths; the root's is empty.
    arrays : tuple of ArrayDescription
        In the order of the hierarchy.
    sources : tuple of SourceDescription
        In order of first use.
    skipped : tuple of Skipped
        What the scan left out.
    references : ReferenceCounts
        Of all arrays.
    stored_bytes, logical_bytes : int
        Of all arrays; strings of variable length do not count among the latter.
    """

    url: str
    kind: str
    groups: tuple[str, ...]
    arrays: tuple[ArrayDescription, ...]
    sources: tuple[SourceDescription, ...]
    skipped: tuple[Skipped, ...]
    references: ReferenceCounts
    stored_bytes: int
    logical_bytes: int

    @classmethod
    def of(cls, url: str, kind: str, group: VirtualGroup) -> Self:
        """Describe a hierarchy."""
        arrays = tuple(ArrayDescription.of(path, array) for path, array in group.walk_arrays())
        return cls(
            url=redact(url),
            kind=kind,
            groups=tuple(path for path, node in group.walk() if isinstance(node, VirtualGroup)),
            arrays=arrays,
            sources=_sources(array.manifest for _, array in group.walk_arrays()),
            skipped=group.skipped,
            references=sum((array.references for array in arrays), ReferenceCounts()),
            stored_bytes=sum(array.stored_bytes for array in arrays),
            logical_bytes=sum(array.logical_bytes or 0 for array in arrays),
        )

    def to_json(self) -> dict[str, Any]:
        """As an object of plain JSON."""
        return asdict(self)


def _sources(manifests: Iterable[ChunkManifest]) -> tuple[SourceDescription, ...]:
    totals: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for manifest in (block for whole in manifests for _, block in whole.blocks(_BLOCK)):
        positions = manifest.virtual_positions()
        if not positions.size:
            continue
        ids, lengths = manifest.url_id.reshape(-1)[positions], manifest.length.reshape(-1)[positions]
        counts = np.bincount(ids, minlength=len(manifest.urls))
        sizes = np.zeros(len(manifest.urls), np.uint64)
        np.add.at(sizes, ids, lengths)
        for url, count, size in zip(manifest.urls, counts.tolist(), sizes.tolist(), strict=True):
            totals[url][0] += count
            totals[url][1] += size
    return tuple(SourceDescription(redact(url), count, size) for url, (count, size) in totals.items() if count)
