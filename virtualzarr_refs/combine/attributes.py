"""Attributes of several files made one, as xarray's ``combine_attrs`` says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.metadata import GroupMetadata

type Typed = tuple[Mapping[str, JSON], Mapping[str, JSON]]
"""Attributes as in ``zarr.json``, and their NumPy types."""


def combine_attributes(attributes: Sequence[Typed], how: str) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """The attributes of the whole, and their types.

    Raises
    ------
    UnsupportedError
        If they must not differ and do.
    """
    first, types = attributes[0]
    if how == "override":
        return dict(first), dict(types)
    if how == "drop":
        return {}, {}
    conflicting = {name for name in _names(attributes) if len(_values(attributes, name)) > 1}
    lacking = {name for name in _names(attributes) if any(name not in plain for plain, _ in attributes)}
    bad = {"identical": conflicting | lacking, "no_conflicts": conflicting, "drop_conflicts": set[str]()}[how]
    if bad:
        raise UnsupportedError(
            f"the attributes {', '.join(map(repr, sorted(bad)))} differ; choose another combine_attrs than {how!r}"
        )
    merged: dict[str, JSON] = {}
    merged_types: dict[str, JSON] = {}
    for plain, own_types in attributes:
        merged |= {name: value for name, value in plain.items() if name not in conflicting}
        merged_types |= {name: value for name, value in own_types.items() if name not in conflicting}
    return merged, merged_types


_OF_VALUES = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned", "units", "calendar")
"""Attributes without which values mean nothing."""


def with_attributes(
    array: VirtualArray, arrays: Sequence[VirtualArray], how: str, *, keep: bool = False
) -> VirtualArray:
    """An array with the attributes of all files.

    Parameters
    ----------
    array : VirtualArray
        What was made of the others; has the attributes of the first.
    arrays : sequence of VirtualArray
        Those of the files.
    how : str
        See `virtualzarr_refs.combine.options.ConcatOptions`.
    keep : bool
        Whether the array keeps its own where they belong to its values.

    Raises
    ------
    UnsupportedError
        If they must not differ and do.
    """
    if how == "override" or len(arrays) == 1:
        return array
    plain, types = combine_attributes([(a.metadata.attributes, a.metadata.attribute_types) for a in arrays], how)
    own = array.metadata
    kept = {name: own.attributes[name] for name in _OF_VALUES if keep and name in own.attributes}
    gone = {name for name in _OF_VALUES if keep} - kept.keys()
    merged = {name: value for name, value in (plain | kept).items() if name not in gone}
    merged_types = {name: value for name, value in (types | dict(own.attribute_types)).items() if name in merged}
    return VirtualArray(replace(own, attributes=merged, attribute_types=merged_types), array.manifest)


def combine_group_metadata(groups: Sequence[GroupMetadata], how: str) -> GroupMetadata:
    """What becomes of the metadata of groups.

    Raises
    ------
    UnsupportedError
        If attributes must not differ and do.
    """
    plain, types = combine_attributes([(group.attributes, group.attribute_types) for group in groups], how)
    unlimited = tuple(dict.fromkeys(dim for group in groups for dim in group.unlimited_dimensions))
    skipped = tuple(dict.fromkeys(record for group in groups for record in group.skipped))
    return GroupMetadata(plain, types, unlimited, skipped)


def _names(attributes: Sequence[Typed]) -> list[str]:
    return list(dict.fromkeys(name for plain, _ in attributes for name in plain))


def _values(attributes: Sequence[Typed], name: str) -> set[str]:
    return {json.dumps([plain[name], types.get(name)], sort_keys=True) for plain, types in attributes if name in plain}
