"""What may be asked of a concatenation, in xarray's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from virtualzarr_refs.errors import UnsupportedError

type Compat = Literal["equals", "identical", "override"]
type CombineAttributes = Literal["override", "drop", "identical", "no_conflicts", "drop_conflicts"]
type Overlap = Literal["error", "first", "last"]

_CHOICES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "data_vars": (("minimal",), "variables without the dimension would have to be repeated; leave it at 'minimal'"),
    "coords": (("minimal",), "coordinates without the dimension would have to be repeated; leave it at 'minimal'"),
    "compat": (("equals", "identical", "override"), "choose 'equals', 'identical' or 'override'"),
    "join": (("exact", "override"), "indexes would have to be aligned, which moves values; align with xarray instead"),
    "combine_attrs": (("override", "drop", "identical", "no_conflicts", "drop_conflicts"), "choose another"),
    "overlap": (("error", "first", "last"), "choose 'error', 'first' or 'last'"),
}


@dataclass(frozen=True, slots=True)
class ConcatOptions:
    """How groups are put together.

    Parameters
    ----------
    compat : {"equals", "identical", "override"}
        How variables without the dimension are compared: their values, attributes too, or not at all.
    combine_attrs : {"override", "drop", "identical", "no_conflicts", "drop_conflicts"}
        What becomes of attributes; see `xarray.concat`.
    sort : bool
        Whether to put the groups in order of their coordinate along the dimension.
    overlap : {"error", "first", "last"}
        Whose values to keep where coordinates of two groups overlap.
    join : {"exact", "override"}
        Whether coordinates of other dimensions have to be equal, or are taken from the first.
    data_vars, coords : {"minimal"}
        Only variables that have the dimension are put together along it.
    storage_options : mapping, optional
        For reading coordinates.

    Raises
    ------
    UnsupportedError
        If a choice is not among these.
    """

    compat: str = "equals"
    combine_attrs: str = "override"
    sort: bool = False
    overlap: str = "error"
    join: str = "exact"
    data_vars: str = "minimal"
    coords: str = "minimal"
    storage_options: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        for name, (choices, advice) in _CHOICES.items():
            chosen = getattr(self, name)
            if chosen not in choices:
                raise UnsupportedError(f"{name}={chosen!r} is not supported: {advice}")
