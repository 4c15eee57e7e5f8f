"""Zarr v3 codecs that existing files need and zarr lacks. zarr finds them through its entry points."""
