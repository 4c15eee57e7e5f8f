"""Many files, on many workers."""

from virtualzarr_refs.many.results import FailedScan, Scans
from virtualzarr_refs.many.scans import scan_many

__all__ = ["FailedScan", "Scans", "scan_many"]
