"""Attributes of several files made one, as xarray's ``combine_attrs`` says."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.codecs.names import PACKING
from virtualzarr_refs.combine.times import TimeUnits
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata

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


_OF_VALUES = frozenset({*PACKING, "coordinates"})
"""Attributes that xarray takes for the encoding of values, and never combines."""


def with_attributes(array: VirtualArray, arrays: Sequence[VirtualArray], how: str) -> VirtualArray:
    """An array with the attributes of all files.

    Parameters
    ----------
    array : VirtualArray
        What was made of the others. It keeps its own of those attributes that say what its values mean.
    arrays : sequence of VirtualArray
        Those of the files.
    how : str
        See `virtualzarr_refs.combine.options.ConcatOptions`.

    Raises
    ------
    UnsupportedError
        If attributes must not differ and do.
    """
    if how == "override" or (len(arrays) == 1 and how != "drop"):
        return array
    own = array.metadata
    kept = _kept_names(own.attributes)
    plain, types = combine_attributes([_without(a.metadata, kept) for a in arrays], how)
    merged = {name: value for name, value in own.attributes.items() if name in kept} | plain
    merged_types = {name: value for name, value in own.attribute_types.items() if name in kept} | types
    return VirtualArray(replace(own, attributes=merged, attribute_types=merged_types), array.manifest)


def _kept_names(attributes: Mapping[str, JSON]) -> frozenset[str]:
    """Names of the attributes that belong to the values; units do where they count time."""
    return _OF_VALUES | ({"units", "calendar"} if TimeUnits.parse(attributes) else frozenset())


def _but(mapping: Mapping[str, JSON], names: Collection[str]) -> dict[str, JSON]:
    return {name: value for name, value in mapping.items() if name not in names}


def _without(metadata: ArrayMetadata, names: frozenset[str]) -> Typed:
    return _but(metadata.attributes, names), _but(metadata.attribute_types, names)


def combine_group_metadata(groups: Sequence[GroupMetadata], how: str) -> GroupMetadata:
    """What becomes of the metadata of groups.

    Raises
    ------
    UnsupportedError
        If attributes must not differ and do.
    """
    first = groups[0]
    listed = {"coordinates"} & first.attributes.keys()  # of the encoding, as those of values are
    pairs = [(_but(group.attributes, listed), _but(group.attribute_types, listed)) for group in groups]
    plain, types = combine_attributes(pairs, how)
    plain |= {name: first.attributes[name] for name in listed}
    unlimited = tuple(dict.fromkeys(dim for group in groups for dim in group.unlimited_dimensions))
    skipped = tuple(dict.fromkeys(record for group in groups for record in group.skipped))
    return GroupMetadata(plain, types, unlimited, skipped)


def _names(attributes: Sequence[Typed]) -> list[str]:
    return list(dict.fromkeys(name for plain, _ in attributes for name in plain))


def _values(attributes: Sequence[Typed], name: str) -> set[str]:
    return {json.dumps([plain[name], types.get(name)], sort_keys=True) for plain, types in attributes if name in plain}
