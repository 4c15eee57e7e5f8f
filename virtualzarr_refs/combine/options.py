"""What may be asked of what puts groups together, in xarray's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from numpy.typing import NDArray

from virtualzarr_refs.combine.values import read_arrays
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.sources.scanned import ScannedSource, Sources, join_sources

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "compat": ("equals", "broadcast_equals", "no_conflicts", "identical", "override"),
    "join": ("exact", "outer", "inner", "left", "right", "override"),
    "combine_attrs": ("override", "drop", "identical", "no_conflicts", "drop_conflicts"),
    "overlap": ("error", "first", "last"),
    "data_vars": ("minimal", "different", "all"),
    "coords": ("minimal", "different", "all"),
}


@dataclass(frozen=True, slots=True)
class ConcatOptions:
    """How groups are put together.

    Parameters
    ----------
    compat : {"equals", "broadcast_equals", "no_conflicts", "identical", "override"}
        How variables without the dimension are compared: their values, attributes too (``"identical"``), or not at all,
        and the first is taken (``"override"``). Values are never mixed: what xarray would fill from another file under
        ``"no_conflicts"``, or repeat under ``"broadcast_equals"``, is refused.
    combine_attrs : {"override", "drop", "identical", "no_conflicts", "drop_conflicts"}
        What becomes of attributes; see `xarray.concat`.
    sort : bool
        Whether to put the groups in order of their coordinate along the dimension.
    overlap : {"error", "first", "last"}
        Whose values to keep where coordinates of two groups overlap.
    join : {"exact", "outer", "inner", "left", "right", "override"}
        Whether coordinates of other dimensions are taken from the first (``"override"``), or have to be equal. Equal
        ones are the same by every other word; unequal ones would have to be aligned, which moves values, and are
        refused.
    data_vars, coords : {"minimal", "different", "all"} or list of str, optional
        Which variables that lack the dimension get it, and are repeated along it: none, those that differ, all, or
        these. By default none where the dimension is there already; where it is new, all data variables, and
        coordinates that differ.
    storage_options : mapping, optional
        For reading coordinates.
    sources : mapping of str to ScannedSource
        What files were when they were scanned. No option of the user's: it comes from the groups.

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
    data_vars: str | Sequence[str] | None = None
    coords: str | Sequence[str] | None = None
    storage_options: Mapping[str, object] | None = None
    sources: Sources = field(default_factory=dict[str, ScannedSource])

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            chosen = getattr(self, name)
            if isinstance(chosen, str) and chosen not in choices:
                raise UnsupportedError(f"{name}={chosen!r} is not supported; choose one of {', '.join(choices)}")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """The options, given by name.

        Raises
        ------
        TypeError
            If there is no such option.
        UnsupportedError
            If a choice is not supported.
        """
        known = [field.name for field in fields(cls) if field.name != "sources"]
        unknown = options.keys() - set(known)
        if unknown:
            raise TypeError(f"there is no option {min(unknown)!r}; there are {', '.join(known)}")
        return cls(**options)

    def reading(self, groups: Iterable[VirtualGroup]) -> Self:
        """The same, for groups whose arrays are going to be read.

        Raises
        ------
        SourceChangedError
            If a source was not the same for all of them.
        """
        return replace(self, sources=join_sources(group.sources for group in groups))

    def read(self, arrays: Sequence[VirtualArray]) -> list[NDArray[Any]]:
        """The values of arrays, as files hold them; see `virtualzarr_refs.combine.values.read_arrays`."""
        return read_arrays(arrays, self.storage_options, self.sources)

    def widened(self, *, is_coordinate: bool, is_new: bool) -> str | Sequence[str]:
        """Which variables that lack the dimension get it: a word, or their names."""
        chosen = self.coords if is_coordinate else self.data_vars
        if chosen is not None:
            return chosen
        if not is_new:
            return "minimal"
        return "different" if is_coordinate else "all"
