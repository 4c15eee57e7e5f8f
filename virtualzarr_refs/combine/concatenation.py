"""Groups put one after the other along a dimension: what `concat`, `stack` and `compare` have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from numpy.typing import NDArray

from virtualzarr_refs.combine.attributes import with_attributes
from virtualzarr_refs.combine.coordinates import (
    MAX_BYTES,
    check_units,
    coordinate_names,
    joined_coordinate,
    time_units,
    unify,
)
from virtualzarr_refs.combine.findings import finding_of, join_or_blame
from virtualzarr_refs.combine.nodes import Arrays, Groups, Join, join_nodes
from virtualzarr_refs.combine.options import ConcatOptions
from virtualzarr_refs.combine.order import Place, arrange, in_order
from virtualzarr_refs.combine.parts import dimensions_of, parts_of, value_bytes
from virtualzarr_refs.combine.report import Comparison, Finding, Refusals, Status, odd_file
from virtualzarr_refs.combine.selecting import take_or_read
from virtualzarr_refs.combine.static import agree
from virtualzarr_refs.combine.values import files_of, with_tail
from virtualzarr_refs.combine.widening import Widening
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.shards.plain import without_shards


@dataclass(slots=True)
class Concatenation:
    """Groups that are put together, and what was found on the way.

    Parameters
    ----------
    groups : list of VirtualGroup
        In the order of the whole, once it ran.
    dim : str
        Along which.
    options : ConcatOptions
        How.
    files : tuple of str
        What each group is called in messages.
    is_new : bool
        Whether they lack the dimension, and each is one element along it.
    findings : list of Finding
        What was found so far.
    known : dict of VirtualArray to ndarray
        Values that were read to put groups in order, and are not read again to be joined.
    """

    groups: list[VirtualGroup]
    dim: str
    options: ConcatOptions
    files: tuple[str, ...]
    is_new: bool
    findings: list[Finding] = field(default_factory=list[Finding])
    known: dict[VirtualArray, NDArray[Any]] = field(default_factory=dict[VirtualArray, "NDArray[Any]"])

    @classmethod
    def of(cls, groups: Iterable[VirtualGroup], dim: str, options: ConcatOptions) -> Self:
        """Those of some groups.

        Raises
        ------
        ValueError
            If there are none.
        """
        given = [without_shards(group.loaded()) for group in groups]
        if not given:
            raise ValueError("there are no groups to put together")
        return cls(given, dim, options.reading(given), files_of(given), not has_dimension(given, dim))

    def run(self) -> VirtualGroup | None:
        """The whole; None if the groups cannot be put in order."""
        with Refusals(self.findings, self.dim):
            lengths = [1 if self.is_new else _length(group, self.dim) for group in self.groups]
            self.groups = Widening(self.dim, self.is_new, lengths, self.files, self.options).widen(self.groups)
            self._arrange()
            return self._whole()
        return None

    def comparison(self) -> Comparison:
        """What was found of every variable."""
        return Comparison(self.dim, len(self.groups), tuple(self.findings))

    def _arrange(self) -> None:
        """Put groups in order, and leave out what overlaps."""
        if self.is_new and not self.options.sort:
            return
        indexes = [group.arrays.get(self.dim) for group in self.groups]
        present = [index for index in indexes if index is not None and dimensions_of(index) == (self.dim,)]
        if len(present) < len(indexes) or len(present) < 2 or sum(map(value_bytes, present)) > MAX_BYTES:
            return
        units = [time_units(group, self.dim) for group in self.groups]
        read = self.options.read(present)
        self.known = dict(zip(present, read, strict=True))
        values = unify(present, read, units, self.files)
        if self.is_new:
            places = in_order(values)
        else:
            places = arrange(values, self.files, sort=self.options.sort, overlap=self.options.overlap)
        self.files = tuple(self.files[place.number] for place in places)
        self.groups = [self._taken(self.groups[place.number], place) for place in places]

    def _taken(self, group: VirtualGroup, place: Place) -> VirtualGroup:
        """What is kept of a group; where its coordinate is kept to the end, variables that reach further are too."""
        end = group.arrays[self.dim].shape[0]
        if (place.start, place.stop) == (0, end):
            return group

        def change(path: str, array: VirtualArray) -> VirtualArray:
            dimensions = dimensions_of(array)
            if self.dim not in dimensions:
                return array
            with Refusals(self.findings, path):
                axis = dimensions.index(self.dim)
                length = array.shape[axis]
                stop = length if place.stop == end else min(place.stop, length)
                return take_or_read(array, axis, min(place.start, stop), stop, self.options)
            return array

        return group.map_arrays(change)

    def _whole(self) -> VirtualGroup:
        lengths = [_length(group, self.dim) for group in self.groups]

        def join_in(_: str, groups: Groups) -> Join:
            coordinates = coordinate_names([group for group in groups if group is not None], self.dim)

            def join(path: str, arrays: Arrays) -> VirtualArray:
                is_coordinate = path.rpartition("/")[2] in coordinates
                return self._array(path, arrays, groups, lengths, is_coordinate=is_coordinate)

            return join

        whole = join_nodes(self.groups, join_in, self.findings, self.options.combine_attrs)
        return replace(whole, sources=self.options.sources)

    def _array(
        self,
        path: str,
        arrays: Arrays,
        groups: Groups,
        lengths: Sequence[int],
        *,
        is_coordinate: bool,
    ) -> VirtualArray:
        present = [array for array in arrays if array is not None]
        first = present[0]
        if not any(self.dim in dimensions_of(array) for array in present):
            array, finding = agree(path, arrays, self.files, self.options)
            self.findings.append(finding)
            return with_attributes(array, present, self.options.combine_attrs)
        files = [file for file, array in zip(self.files, arrays, strict=True) if array is not None]
        _check_dimensions(present, files)
        axis = dimensions_of(first).index(self.dim)
        name = path.rpartition("/")[2]
        units = [time_units(group, name) for group in groups if group is not None and name in group.arrays]
        if self._is_inline(arrays, units, is_coordinate=is_coordinate):
            read = self._read(present)
            values = [with_tail(*three, axis) for three in zip(present, read, lengths, strict=True)]
            values = unify(present, values, units, files)
            self.findings.append(Finding(path, Status.EQUAL, "read, and kept as one chunk"))
            joined = joined_coordinate(first, values, axis)
            return with_attributes(joined, present, self.options.combine_attrs)
        check_units(present, files)
        parts = [part for three in zip(self.files, arrays, lengths, strict=True) for part in parts_of(*three, axis)]
        found = join_or_blame(parts, axis)
        self.findings.append(finding_of(path, found, arrays, self.files))
        return with_attributes(found.array, present, self.options.combine_attrs)

    def _read(self, arrays: Sequence[VirtualArray]) -> list[NDArray[Any]]:
        fresh = [array for array in arrays if array not in self.known]
        values = self.known | dict(zip(fresh, self.options.read(fresh), strict=True))
        return [values[array] for array in arrays]

    def _is_inline(self, arrays: Arrays, units: Sequence[object], *, is_coordinate: bool) -> bool:
        """Whether an array is read and kept as one chunk; it has to be if it counts time in different ways."""
        present = [array for array in arrays if array is not None]
        differs = any(own != units[0] for own in units)
        if len(present) < len(arrays):
            if differs or (is_coordinate and dimensions_of(present[0]) == (self.dim,)):
                odd = odd_file([array is None for array in arrays], self.files)
                raise UnsupportedError("it is a coordinate, and some files lack it; drop it, or these files").at(
                    url=odd
                )
            return False
        if not is_coordinate and not differs:
            return False
        size = sum(map(value_bytes, present))
        if differs and size > MAX_BYTES:
            raise UnsupportedError(f"its times differ in units, and its {size} bytes are too many to be converted")
        return size <= MAX_BYTES


def _check_dimensions(arrays: Sequence[VirtualArray], files: Sequence[str]) -> None:
    found = [dimensions_of(array) for array in arrays]
    different = list(dict.fromkeys(found))
    if len(different) > 1:
        raise UnsupportedError(f"its dimensions differ: {different[0]} and {different[1]}; transpose or drop it").at(
            url=odd_file(found, files)
        )


def has_dimension(groups: Iterable[VirtualGroup], dim: str) -> bool:
    """Whether any variable has a dimension."""
    return any(dim in dimensions_of(array) for group in groups for _, array in group.walk_arrays())


def _length(group: VirtualGroup, dim: str) -> int:
    """The length of a dimension in one group.

    Raises
    ------
    UnsupportedError
        If its variables do not agree.
    """
    lengths = {
        array.shape[dimensions_of(array).index(dim)] for _, array in group.walk_arrays() if dim in dimensions_of(array)
    }
    if len(lengths) > 1 and not _is_unlimited(group, dim):
        raise UnsupportedError(f"the dimension {dim!r} has several lengths in one file: {sorted(lengths)}")
    return max(lengths, default=0)


def _is_unlimited(group: VirtualGroup, dim: str) -> bool:
    """Whether variables may hold less along a dimension than it has; the rest reads as their fill value."""
    return any(dim in node.metadata.unlimited_dimensions for _, node in group.walk() if isinstance(node, VirtualGroup))
