"""Hierarchies put together node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from virtualzarr_refs.combine.attributes import combine_group_metadata
from virtualzarr_refs.combine.report import Finding, Refusals
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup, join_path
from virtualzarr_refs.metadata import GroupMetadata

type Groups = Sequence[VirtualGroup | None]
"""The group at one path in each file; None where a file lacks it."""

type Arrays = Sequence[VirtualArray | None]
"""The array at one path in each file; None where a file lacks it."""

type Join = Callable[[str, Arrays], VirtualArray]
"""Makes one array of those at a path."""


def join_nodes(
    groups: Groups, join_in: Callable[[str, Groups], Join], findings: list[Finding], combine_attrs: str, path: str = ""
) -> VirtualGroup:
    """One hierarchy of several.

    Parameters
    ----------
    groups : sequence of VirtualGroup or None
        At least one is there.
    join_in : callable
        Takes a path and the groups there, and gives what joins their arrays.
    findings : list of Finding
        Where what cannot be carried goes.
    combine_attrs : str
        What becomes of the groups' attributes; see `virtualzarr_refs.combine.options.ConcatOptions`.
    path : str
        Of the groups.
    """
    join = join_in(path, groups)
    arrays: dict[str, VirtualArray] = {}
    for name, own in arrays_at(groups):
        node = join_path(path, name)
        with Refusals(findings, node):
            arrays[name] = join(node, own)
    children = {
        name: join_nodes(below, join_in, findings, combine_attrs, join_path(path, name))
        for name, below in groups_at(groups)
    }
    metadata = GroupMetadata()
    with Refusals(findings, path):
        present = [group.metadata for group in groups if group is not None]
        metadata = combine_group_metadata(present, combine_attrs)
    return VirtualGroup(metadata, arrays, children)


def arrays_at(groups: Groups) -> Iterator[tuple[str, list[VirtualArray | None]]]:
    """Every name of an array in some groups, and the array of each."""
    for name in _names(group.arrays for group in groups if group is not None):
        yield name, [None if group is None else group.arrays.get(name) for group in groups]


def groups_at(groups: Groups) -> Iterator[tuple[str, list[VirtualGroup | None]]]:
    """Every name of a group in some groups, and the group of each."""
    for name in _names(group.groups for group in groups if group is not None):
        yield name, [None if group is None else group.groups.get(name) for group in groups]


def _names(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    """Every name once, in order of first use."""
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))
