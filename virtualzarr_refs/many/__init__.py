"""Many files, on many workers."""

from virtualzarr_refs.many.scans import scan_many

__all__ = ["scan_many"]
