"""Zarr references to the chunks that HDF5 and NetCDF archives already hold.

Names are imported when they are first used, so that importing the package costs little more than NumPy.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from virtualzarr_refs.adapters.icechunk_writing import write_icechunk
    from virtualzarr_refs.adapters.virtualizarr_parser import VirtualiZarrParser
    from virtualzarr_refs.adapters.virtualizarr_scanner import from_virtualizarr
    from virtualzarr_refs.byte_range import ByteRange
    from virtualzarr_refs.checking import check
    from virtualzarr_refs.combine import (
        Comparison,
        append,
        combine_by_coords,
        combine_nested,
        compare,
        concat,
        drop_vars,
        keep_vars,
        merge,
        stack,
    )
    from virtualzarr_refs.errors import (
        CacheWarning,
        DecodeError,
        FormatError,
        IncompatibleError,
        NodeNotFoundError,
        NotRepresentableError,
        ReferenceSetError,
        SetLockedError,
        SkippedFileWarning,
        SkippedNodeWarning,
        SourceChangedError,
        SourceChangedWarning,
        SourceError,
        SourceMissingError,
        SourceNotFoundError,
        SourceTruncatedError,
        UnsupportedError,
        VirtualZarrError,
        WorkerLostError,
    )
    from virtualzarr_refs.filesystem import VirtualFileSystem
    from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
    from virtualzarr_refs.manifest import InlineChunk, Manifest, VirtualChunk
    from virtualzarr_refs.many import scan_many
    from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata, Skipped
    from virtualzarr_refs.rechunking import rechunk
    from virtualzarr_refs.references import open_refs, write_json
    from virtualzarr_refs.references.icechunk.opening import open_icechunk
    from virtualzarr_refs.references.parquet.writer import write_parquet
    from virtualzarr_refs.scanning import Scanner, ScanOptions, scan
    from virtualzarr_refs.shards import to_shards
    from virtualzarr_refs.store import VirtualStore
    from virtualzarr_refs.virtual_xarray import from_xarray

_HOME_OF = {
    "ArrayMetadata": "metadata",
    "ByteRange": "byte_range",
    "CacheWarning": "errors",
    "Comparison": "combine",
    "DecodeError": "errors",
    "FormatError": "errors",
    "GroupMetadata": "metadata",
    "IncompatibleError": "errors",
    "InlineChunk": "manifest",
    "Manifest": "manifest",
    "NodeNotFoundError": "errors",
    "NotRepresentableError": "errors",
    "ReferenceSetError": "errors",
    "ScanOptions": "scanning",
    "Scanner": "scanning",
    "SetLockedError": "errors",
    "Skipped": "metadata",
    "SkippedFileWarning": "errors",
    "SkippedNodeWarning": "errors",
    "SourceChangedError": "errors",
    "SourceChangedWarning": "errors",
    "SourceError": "errors",
    "SourceMissingError": "errors",
    "SourceNotFoundError": "errors",
    "SourceTruncatedError": "errors",
    "UnsupportedError": "errors",
    "VirtualArray": "hierarchy",
    "VirtualChunk": "manifest",
    "VirtualFileSystem": "filesystem",
    "VirtualGroup": "hierarchy",
    "VirtualStore": "store",
    "VirtualZarrError": "errors",
    "VirtualiZarrParser": "adapters.virtualizarr_parser",
    "WorkerLostError": "errors",
    "append": "combine",
    "check": "checking",
    "combine_by_coords": "combine",
    "combine_nested": "combine",
    "compare": "combine",
    "concat": "combine",
    "drop_vars": "combine",
    "from_virtualizarr": "adapters.virtualizarr_scanner",
    "from_xarray": "virtual_xarray",
    "keep_vars": "combine",
    "merge": "combine",
    "open_icechunk": "references.icechunk.opening",
    "open_refs": "references",
    "rechunk": "rechunking",
    "scan": "scanning",
    "scan_many": "many",
    "stack": "combine",
    "to_shards": "shards",
    "write_icechunk": "adapters.icechunk_writing",
    "write_json": "references",
    "write_parquet": "references.parquet.writer",
}

__version__ = "0.1.0"
__all__ = [
    "ArrayMetadata",
    "ByteRange",
    "CacheWarning",
    "Comparison",
    "DecodeError",
    "FormatError",
    "GroupMetadata",
    "IncompatibleError",
    "InlineChunk",
    "Manifest",
    "NodeNotFoundError",
    "NotRepresentableError",
    "ReferenceSetError",
    "ScanOptions",
    "Scanner",
    "SetLockedError",
    "Skipped",
    "SkippedFileWarning",
    "SkippedNodeWarning",
    "SourceChangedError",
    "SourceChangedWarning",
    "SourceError",
    "SourceMissingError",
    "SourceNotFoundError",
    "SourceTruncatedError",
    "UnsupportedError",
    "VirtualArray",
    "VirtualChunk",
    "VirtualFileSystem",
    "VirtualGroup",
    "VirtualStore",
    "VirtualZarrError",
    "VirtualiZarrParser",
    "WorkerLostError",
    "__version__",
    "append",
    "check",
    "combine_by_coords",
    "combine_nested",
    "compare",
    "concat",
    "drop_vars",
    "from_virtualizarr",
    "from_xarray",
    "keep_vars",
    "merge",
    "open_icechunk",
    "open_refs",
    "rechunk",
    "scan",
    "scan_many",
    "stack",
    "to_shards",
    "write_icechunk",
    "write_json",
    "write_parquet",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  any public object
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _enable_rectilinear_chunks() -> None:
    """Let zarr read rectilinear chunk grids; a setting of the user's own in the environment stands.

    zarr reads its settings from the environment when it is imported, which costs more than all of this
    package; so where it is not imported yet, the environment is where to say it.
    """
    if "zarr" in sys.modules:
        sys.modules["zarr"].config.set({"array.rectilinear_chunks": True})
    else:
        os.environ.setdefault("ZARR_ARRAY__RECTILINEAR_CHUNKS", "True")


_enable_rectilinear_chunks()
