"""Checking a reference set against the files that it refers to.

Every chunk is read through zarr, as a user would, and compared with what the format's own library reads from the
file, bit for bit.
"""

from virtualzarr_refs.checking.checker import check
from virtualzarr_refs.checking.report import ArrayReport, CheckReport, Difference, SourceReport

__all__ = ["ArrayReport", "CheckReport", "Difference", "SourceReport", "check"]
