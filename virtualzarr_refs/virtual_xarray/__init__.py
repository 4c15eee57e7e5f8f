"""Datasets of xarray whose variables are references: put together in xarray's words, and turned back into groups."""

import virtualzarr_refs.virtual_xarray.operations  # noqa: F401  # pyright: ignore[reportUnusedImport]  registers
from virtualzarr_refs.virtual_xarray.opening import open_virtual
from virtualzarr_refs.virtual_xarray.writing import from_xarray

__all__ = ["from_xarray", "open_virtual"]
