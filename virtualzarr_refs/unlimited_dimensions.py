"""Dimensions that can grow, and how NetCDF shows what has not grown as far as they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup


@dataclass(frozen=True, slots=True)
class UnlimitedDimensions:
    """How long unlimited dimensions are: as the longest variable along them.

    A variable may be shorter than a dimension that can grow; NetCDF shows fill values for the rest. A group's
    dimensions are also those of the groups beneath.

    Parameters
    ----------
    owners : mapping of str to mapping of str to str
        By path of a group, and by name of a dimension that it sees, the path of the group that declares it.
    lengths : mapping of (str, str) to int
        By path of the group that declares it, and name.
    """

    owners: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    lengths: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    @classmethod
    def of(cls, root: VirtualGroup) -> UnlimitedDimensions:
        """The unlimited dimensions of a whole hierarchy."""
        found = cls()
        for path, node in root.walk():
            parent = path.rpartition("/")[0]
            if isinstance(node, VirtualGroup):
                inherited = found.owners.get(parent, {})
                found.owners[path] = {**inherited, **dict.fromkeys(node.metadata.unlimited_dimensions, path)}
            else:
                for axis, key in found._along(parent, node):
                    found.lengths[key] = max(node.shape[axis], found.lengths.get(key, 0))
        return found

    def shape(self, group: str, array: VirtualArray) -> Shape:
        """The shape of an array of the group at path `group`, as NetCDF shows it."""
        shape = list(array.shape)
        for axis, key in self._along(group, array):
            shape[axis] = self.lengths[key]
        return tuple(shape)

    def _along(self, group: str, array: VirtualArray) -> Iterator[tuple[int, tuple[str, str]]]:
        """The axes of an array along unlimited dimensions, and which these are."""
        metadata, owners = array.metadata, self.owners[group]
        fixed = cast("list[int]", metadata.encoding.get("fixed_axes", []))
        for axis, name in enumerate(metadata.dimension_names or ()):
            if name is not None and name in owners and axis not in fixed:
                yield axis, (owners[name], name)
