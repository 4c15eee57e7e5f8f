"""Attributes of several files made one, as xarray's ``combine_attrs`` says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.errors import UnsupportedError

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


def _names(attributes: Sequence[Typed]) -> list[str]:
    return list(dict.fromkeys(name for plain, _ in attributes for name in plain))


def _values(attributes: Sequence[Typed], name: str) -> set[str]:
    return {json.dumps([plain[name], types.get(name)], sort_keys=True) for plain, types in attributes if name in plain}
