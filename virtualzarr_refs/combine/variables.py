"""Leaving variables out, before groups are put together or a set is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from virtualzarr_refs.combine.coordinates import is_coordinate, listed_bounds
from virtualzarr_refs.errors import NodeNotFoundError
from virtualzarr_refs.hierarchy import VirtualGroup


def drop_vars(group: VirtualGroup, names: str | Iterable[str], *, errors: str = "raise") -> VirtualGroup:
    """The group without some variables.

    Parameters
    ----------
    group : VirtualGroup
        The hierarchy.
    names : str or iterable of str
        Of variables, wherever they are, or paths such as ``"forecast/u"``.
    errors : {"raise", "ignore"}
        What to do about names that are nowhere.

    Raises
    ------
    NodeNotFoundError
        If there is no such variable.
    """
    asked = _asked(group, names, errors)
    return _filtered(group, lambda _, path: not asked & {path, path.rpartition("/")[2]})


def keep_vars(group: VirtualGroup, names: str | Iterable[str], *, errors: str = "raise") -> VirtualGroup:
    """The group with some variables only, and their coordinates.

    Parameters
    ----------
    group : VirtualGroup
        The hierarchy.
    names : str or iterable of str
        Of variables, wherever they are, or paths such as ``"forecast/u"``.
    errors : {"raise", "ignore"}
        What to do about names that are nowhere.

    Raises
    ------
    NodeNotFoundError
        If there is no such variable.
    """
    asked = _asked(group, names, errors)

    def is_kept(owner: VirtualGroup, path: str) -> bool:
        name = path.rpartition("/")[2]
        return bool(asked & {path, name}) or is_coordinate([owner], name) or name in listed_bounds(owner)

    return _filtered(group, is_kept)


def _asked(group: VirtualGroup, names: str | Iterable[str], errors: str) -> frozenset[str]:
    asked = frozenset([names] if isinstance(names, str) else names)
    unknown = asked - known_names([group])
    if errors == "raise" and unknown:
        raise NodeNotFoundError("there is no such variable", node=min(unknown))
    return asked


def known_names(groups: Iterable[VirtualGroup]) -> set[str]:
    """What variables of some groups can be called: their names and their paths."""
    paths = (path for group in groups for path, _ in group.walk_arrays())
    return {name for path in paths for name in (path, path.rpartition("/")[2])}


def _filtered(group: VirtualGroup, is_kept: Callable[[VirtualGroup, str], bool], prefix: str = "") -> VirtualGroup:
    return replace(
        group,
        arrays={name: array for name, array in group.arrays.items() if is_kept(group, prefix + name)},
        groups={name: _filtered(below, is_kept, f"{prefix}{name}/") for name, below in group.groups.items()},
    )
