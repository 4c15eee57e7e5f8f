"""Putting hierarchies together: along a dimension, along a new one, side by side."""

from virtualzarr_refs.combine.concat import compare, concat, stack
from virtualzarr_refs.combine.report import Comparison, Finding, Status

__all__ = ["Comparison", "Finding", "Status", "compare", "concat", "stack"]
