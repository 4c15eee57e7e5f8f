"""Groups put together in the order that their coordinates have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.combine.coordinates import time_units, unify
from virtualzarr_refs.combine.merge import merge
from virtualzarr_refs.combine.nested import combine_along
from virtualzarr_refs.combine.options import ConcatOptions
from virtualzarr_refs.combine.parts import dimensions_of
from virtualzarr_refs.combine.values import files_of, same_values
from virtualzarr_refs.errors import IncompatibleError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup

type Tile = tuple[int, ...]
"""Where a group goes: its place along each dimension."""


def combine_by_coords(groups: Iterable[VirtualGroup], **options: Any) -> VirtualGroup:  # noqa: ANN401
    """Put groups together in the order and the tiling that their coordinates have.

    Groups with the same variables are put together along every dimension whose coordinate differs, then those with
    other variables side by side, as `xarray.combine_by_coords` does.

    Parameters
    ----------
    groups : iterable of VirtualGroup
        In any order.
    **options
        See `virtualzarr_refs.combine.options.ConcatOptions`.

    Returns
    -------
    VirtualGroup
        Its values equal what xarray gives for the same files.

    Raises
    ------
    IncompatibleError
        If coordinates do not tell the order, tiles are missing or there twice, or groups cannot be put together.
    UnsupportedError
        If an option is not supported.
    SourceError, DecodeError
        If a coordinate cannot be read.
    """
    chosen = ConcatOptions.of(options)
    kinds: dict[frozenset[str], list[VirtualGroup]] = {}
    for group in groups:
        kinds.setdefault(frozenset(path for path, _ in group.walk_arrays()), []).append(group)
    if not kinds:
        raise ValueError("there are no groups to put together")
    parts = [_tiled(alike, chosen, options) for alike in kinds.values()]
    if len(parts) == 1:
        return parts[0]
    return merge(parts, **{name: options[name] for name in ("compat", "join", "combine_attrs") if name in options})


def _tiled(groups: Sequence[VirtualGroup], chosen: ConcatOptions, options: Mapping[str, Any]) -> VirtualGroup:
    if len(groups) == 1:
        return groups[0]
    files, chosen = files_of(groups), chosen.reading(groups)
    axes = [axis for dim in _candidates(groups) if (axis := _Axis.of(groups, files, dim, chosen)) is not None]
    if not axes:
        raise IncompatibleError(
            "no coordinate along a dimension tells the groups apart; use combine_nested, or concat with the dimension",
            url=files[0],
        )
    tiles = _places(groups, files, axes)
    return _combined(tiles, [axis.dim for axis in axes], dict(options))


@dataclass(frozen=True, slots=True)
class _Axis:
    """A dimension along which groups are put together, and each group's place."""

    dim: str
    places: NDArray[np.intp]

    @classmethod
    def of(cls, groups: Sequence[VirtualGroup], files: Sequence[str], dim: str, options: ConcatOptions) -> _Axis | None:
        """That of a dimension; None if its coordinate is the same in all groups."""
        homes = [_home(group, dim) for group in groups]
        arrays = [home.arrays[dim] for home in homes if home is not None]
        if len(arrays) < len(groups):
            odd = next(file for file, home in zip(files, homes, strict=True) if home is None)
            raise IncompatibleError(f"the coordinate {dim!r} is missing; add it, or use combine_nested", url=odd)
        units = [time_units(home, dim) for home in homes if home is not None]
        values = unify(arrays, options.read(arrays), units, files)
        if all(same_values(values[0], other) for other in values[1:]):
            return None
        descends = _descends(values, files, dim)
        firsts = np.array([own[0] for own in values])
        _, places = np.unique(firsts, return_inverse=True)
        return cls(dim, places.max() - places if descends else places)


def _candidates(groups: Sequence[VirtualGroup]) -> list[str]:
    """Dimensions that have a coordinate, in the order of the variables' axes."""
    arrays = [array for group in groups[:1] for _, array in group.walk_arrays()]
    dims = dict.fromkeys(dim for array in sorted(arrays, key=lambda a: -len(a.shape)) for dim in dimensions_of(array))
    return [dim for dim in dims if _home(groups[0], dim) is not None]


def _home(group: VirtualGroup, dim: str) -> VirtualGroup | None:
    """The group, or the first beneath it, that has a dimension's coordinate."""
    for _, node in group.walk():
        if not isinstance(node, VirtualArray) and dim in node.arrays and dimensions_of(node.arrays[dim]) == (dim,):
            return node
    return None


def _descends(values: Sequence[NDArray[Any]], files: Sequence[str], dim: str) -> bool:
    """Whether a coordinate falls in all groups."""
    rises = [own.size < 2 or bool((own[1:] > own[:-1]).all()) for own in values]
    falls = [own.size < 2 or bool((own[1:] < own[:-1]).all()) for own in values]
    if all(rises) or all(falls):
        if not all(own.size for own in values):
            empty = next(file for file, own in zip(files, values, strict=True) if not own.size)
            raise IncompatibleError(f"the coordinate {dim!r} is empty; leave the file out", url=empty)
        return not all(rises)
    odd = next((f for f, up in zip(files, rises, strict=True) if up != rises[0]), files[0])
    raise IncompatibleError(
        f"the coordinate {dim!r} does not rise in all files, nor fall in all; use combine_nested", url=odd
    )


def _places(groups: Sequence[VirtualGroup], files: Sequence[str], axes: Sequence[_Axis]) -> dict[Tile, VirtualGroup]:
    """The groups by their places.

    Raises
    ------
    IncompatibleError
        If two have the same, or one is missing.
    """
    names = ", ".join(repr(axis.dim) for axis in axes)
    tiles: dict[Tile, VirtualGroup] = {}
    owners: dict[Tile, str] = {}
    for number, (file, group) in enumerate(zip(files, groups, strict=True)):
        tile = tuple(int(axis.places[number]) for axis in axes)
        if tile in tiles:
            raise IncompatibleError(
                f"it has the same coordinates along {names} as {owners[tile]}; leave one of them out", url=file
            )
        tiles[tile], owners[tile] = group, file
    shape = tuple(int(axis.places.max()) + 1 for axis in axes)
    if len(tiles) < math.prod(shape):
        missing = next(tile for tile in np.ndindex(*shape) if tile not in tiles)
        raise IncompatibleError(
            f"the files tile {names} as {shape}, and the one at {missing} is missing; add it, or use combine_nested"
        )
    return tiles


def _combined(tiles: Mapping[Tile, VirtualGroup], dims: Sequence[str], options: dict[str, Any]) -> VirtualGroup:
    """Put tiles together, along the last dimension first."""
    if not dims:
        return tiles[()]
    rows: dict[Tile, dict[int, VirtualGroup]] = {}
    for tile, group in tiles.items():
        rows.setdefault(tile[:-1], {})[tile[-1]] = group
    joined = {tile: combine_along([row[i] for i in sorted(row)], dims[-1], options) for tile, row in rows.items()}
    return _combined(joined, dims[:-1], options)
