"""Files that are used as shards: what already lies in them is the chunks, and an index is all that they lack."""

from virtualzarr_refs.shards.conversion import to_shards

__all__ = ["to_shards"]
