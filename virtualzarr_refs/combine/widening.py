"""Which variables get the dimension along which files are put together, where they lack it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from virtualzarr_refs.combine.coordinates import is_coordinate
from virtualzarr_refs.combine.expanding import expand
from virtualzarr_refs.combine.nodes import Arrays, Groups, arrays_at, groups_at
from virtualzarr_refs.combine.options import ConcatOptions
from virtualzarr_refs.combine.parts import dimensions_of
from virtualzarr_refs.combine.static import agree
from virtualzarr_refs.errors import NodeNotFoundError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup, join_path


@dataclass(frozen=True, slots=True)
class Widening:
    """What decides which variables get the dimension.

    Parameters
    ----------
    dim : str
        The dimension.
    is_new : bool
        Whether no variable has it yet.
    lengths : sequence of int
        Of the dimension in each file, in elements.
    files : sequence of str
        Their names.
    options : ConcatOptions
        What was asked for.
    """

    dim: str
    is_new: bool
    lengths: Sequence[int]
    files: Sequence[str]
    options: ConcatOptions

    def widen(self, groups: Sequence[VirtualGroup]) -> list[VirtualGroup]:
        """The groups, with the dimension wherever it was asked for.

        Raises
        ------
        NodeNotFoundError
            If variables were named that are nowhere.
        SourceError, DecodeError
            If a variable cannot be read to be compared.
        """
        self._check_names(groups)
        chosen = frozenset(self._chosen("", groups))

        def widened(group: VirtualGroup, length: int) -> VirtualGroup:
            def change(path: str, array: VirtualArray) -> VirtualArray:
                return expand(array, self.dim, length) if path in chosen and self._lacks(array) else array

            return group.map_arrays(change)

        return list(map(widened, groups, self.lengths)) if chosen else list(groups)

    def _lacks(self, array: VirtualArray) -> bool:
        return self.dim not in dimensions_of(array)

    def _chosen(self, path: str, groups: Groups) -> Iterator[str]:
        """Paths of the arrays that get the dimension."""
        present = [group for group in groups if group is not None]
        for name, arrays in arrays_at(groups):
            node = join_path(path, name)
            if all(array is None or self._lacks(array) for array in arrays) and self._is_wanted(node, arrays, present):
                yield node
        for name, below in groups_at(groups):
            yield from self._chosen(join_path(path, name), below)

    def _is_wanted(self, path: str, arrays: Arrays, groups: Sequence[VirtualGroup]) -> bool:
        name = path.rpartition("/")[2]
        if name == self.dim and all(array is None or not array.shape for array in arrays):
            return True
        if any(array is not None and dimensions_of(array) == (name,) for array in arrays):
            return False
        how = self.options.widened(is_coordinate=is_coordinate(groups, name), is_new=self.is_new)
        if not isinstance(how, str):
            return name in how
        return how == "all" or (how == "different" and self._differs(path, arrays))

    def _differs(self, path: str, arrays: Arrays) -> bool:
        options = replace(self.options, compat="equals")
        try:
            agree(path, arrays, self.files, options)
        except UnsupportedError:
            return True
        return any(array is None for array in arrays)

    def _check_names(self, groups: Sequence[VirtualGroup]) -> None:
        asked = [
            name
            for how in (self.options.data_vars, self.options.coords)
            if not isinstance(how, str | None)
            for name in how
        ]
        if not asked:
            return
        known = {path.rpartition("/")[2] for group in groups for path, _ in group.walk_arrays()}
        for name in asked:
            if name not in known:
                raise NodeNotFoundError("no file has this variable, which is to get the dimension", node=name)
