"""Names of our codecs and of their members, for what builds configurations without running codecs."""

from __future__ import annotations

from collections.abc import Mapping

CROP = "virtualzarr_refs.crop"
MIXED = "virtualzarr_refs.mixed"
RESHAPE = "reshape"

PACKING_MEMBERS: Mapping[str, str] = {
    "fill_value": "_FillValue",
    "missing_value": "missing_value",
    "scale_factor": "scale_factor",
    "add_offset": "add_offset",
    "_Unsigned": "_Unsigned",
}
"""Members of a variant, and the attributes of CF that they are; ``types`` goes by the attributes' names."""

PACKING = tuple(PACKING_MEMBERS.values())
"""The attributes that decide what a stored value stands for."""
