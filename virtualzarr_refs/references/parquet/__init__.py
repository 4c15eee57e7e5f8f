"""Reference sets in Parquet: our own, in Zarr v3, and kerchunk's, in Zarr v2."""
