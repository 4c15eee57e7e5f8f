"""Reading byte ranges of source files: local ones by memory mapping, others through fsspec or obstore.

`open_source` picks the backend; a `SourcePool` holds the sources that a reference set points into. Nothing here
knows about arrays or chunks. Everything is synchronous and safe to call from many threads.
"""

from virtualzarr_refs.sources.guarded import OnChange
from virtualzarr_refs.sources.identity import SourceIdentity
from virtualzarr_refs.sources.opening import Backend, open_source
from virtualzarr_refs.sources.pool import SourcePool
from virtualzarr_refs.sources.protocol import Source
from virtualzarr_refs.sources.scanned import ScannedSource, Sources

__all__ = ["Backend", "OnChange", "ScannedSource", "Source", "SourceIdentity", "SourcePool", "Sources", "open_source"]
