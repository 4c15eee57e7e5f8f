"""Putting hierarchies together: along a dimension, along a new one, side by side."""

from virtualzarr_refs.combine.append import append
from virtualzarr_refs.combine.by_coords import combine_by_coords
from virtualzarr_refs.combine.concat import compare, concat, stack
from virtualzarr_refs.combine.merge import merge
from virtualzarr_refs.combine.nested import combine_nested
from virtualzarr_refs.combine.report import Comparison, Finding, Status
from virtualzarr_refs.combine.variables import drop_vars, keep_vars

__all__ = [
    "Comparison",
    "Finding",
    "Status",
    "append",
    "combine_by_coords",
    "combine_nested",
    "compare",
    "concat",
    "drop_vars",
    "keep_vars",
    "merge",
    "stack",
]
