"""Reference sets on disk: reading and writing."""

from virtualzarr_refs.references.json_writer import write_json
from virtualzarr_refs.references.opening import open_refs

__all__ = ["open_refs", "write_json"]
