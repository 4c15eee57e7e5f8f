"""Copies of files that carry the indexes of their shards, for readers that know no reference sets."""

from virtualzarr_refs.embedding.writer import Embedded, embed

__all__ = ["Embedded", "embed"]
