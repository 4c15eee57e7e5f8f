"""The NetCDF4 view of an HDF5 tree: which dimensions its datasets have, and what NetCDF hides.

NetCDF-4 file format specification ("Dimensions", "Dimensions without coordinate variables", "Coordinate
variables", "Phony dimensions"), and the HDF5 Dimension Scale specification. Where files break the rules that
these set, the names here stay consistent: in one group, and in the groups that inherit from it, a dimension has
one length.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import numpy as np

from scanners.hdf5.records import DatasetRecord, GroupRecord, ObjectKey

HIDDEN_ATTRIBUTES = frozenset(
    {
        "_Netcdf4Dimid",
        "_Netcdf4Coordinates",
        "_nc3_strict",
        "_NCProperties",
        "DIMENSION_LIST",
        "REFERENCE_LIST",
    }
)
"""Attributes that carry no data of the user's: how NetCDF and HDF5 keep track of dimensions and versions."""

SCALE_ATTRIBUTES = frozenset({"CLASS", "NAME"})
"""Hidden too, on a dimension scale; elsewhere they are the user's, as in HDF5's image and table conventions."""

NOT_A_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
"""How the ``NAME`` of a dimension scale begins that stands for a dimension without variable."""

NOT_A_COORDINATE = "_nc4_non_coord_"
"""What the name of a dataset begins with that shares a dimension's name without being its coordinate."""


@dataclass(frozen=True, slots=True)
class DatasetView:
    """How NetCDF shows a dataset.

    Parameters
    ----------
    name : str
        Name of the variable.
    dimensions : tuple of str
        One for each axis of the dataspace.
    is_placeholder : bool
        Whether it only stands for a dimension, and is no variable.
    fixed_axes : tuple of int
        Axes along a dimension of fixed length that hides an unlimited one of the same name, of an outer group.
    """

    name: str
    dimensions: tuple[str, ...]
    is_placeholder: bool = False
    fixed_axes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NetCDFView:
    """How NetCDF shows a tree.

    Parameters
    ----------
    datasets : mapping of str to DatasetView
        By path of the dataset.
    unlimited : mapping of str to tuple of str
        By path of the group, the dimensions that it declares and that can grow.
    """

    datasets: Mapping[str, DatasetView]
    unlimited: Mapping[str, tuple[str, ...]]


def netcdf_view(root: GroupRecord) -> NetCDFView:
    """How NetCDF shows the tree beneath `root`.

    Axes without a usable dimension scale get a dimension of their group that has their length, or else an
    invented one, ``phony_dim_N``, as h5netcdf does with ``phony_dims="sort"``.
    """
    scopes = _declare(root)
    _grow_unlimited(scopes)
    foreign = _foreign_dimensions(scopes)
    taken = {name for scope in scopes for name in scope.dimensions}
    datasets: dict[str, DatasetView] = {}
    phony_count = 0
    for scope in scopes:
        named = {name: _named_axes(scope, record, foreign) for name, record in scope.group.datasets.items()}
        phony = _phony_dimensions(scope, named, scope.declared + phony_count, taken)
        taken.update(dimension.name for dimension in phony)
        phony_count += len(phony)
        datasets |= _dataset_views(scope, named, phony)
    unlimited = {s.group.path: tuple(d.name for d in s.dimensions.values() if d.unlimited) for s in scopes}
    return NetCDFView(datasets, unlimited)


def visible_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that carry a user's data."""
    hidden = HIDDEN_ATTRIBUTES
    if _text(attributes.get("CLASS")) == "DIMENSION_SCALE":
        hidden |= SCALE_ATTRIBUTES
    return {name: value for name, value in attributes.items() if name not in hidden}


def is_placeholder(record: DatasetRecord) -> bool:
    """Whether a dataset only stands for a dimension without variable."""
    return _is_scale(record) and _text(record.attributes.get("NAME")).startswith(NOT_A_VARIABLE)


# ── Declared dimensions ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, eq=False)
class _Dimension:
    """A dimension; its length can grow while the tree is read."""

    name: str
    length: int
    unlimited: bool = False

    def fits(self, length: int) -> bool:
        return self.unlimited or self.length == length


@dataclass(slots=True)
class _Scope:
    """The dimensions that a group declares, and the way to those that it inherits.

    `declared` counts the dimensions of this group and of all before it; they are numbered in that order.
    """

    group: GroupRecord
    parent: _Scope | None
    declared: int
    dimensions: dict[str, _Dimension] = field(default_factory=dict[str, _Dimension])
    by_key: dict[ObjectKey, _Dimension] = field(default_factory=dict[ObjectKey, _Dimension])
    by_id: dict[int, _Dimension] = field(default_factory=dict[int, _Dimension])
    adopted: dict[str, _Dimension] = field(default_factory=dict[str, _Dimension])

    def lineage(self) -> Iterator[_Scope]:
        """The scope and those that it inherits from, the nearest first."""
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def named(self, name: str) -> _Dimension | None:
        """The dimension that a name stands for here: the nearest one."""
        return next((s.dimensions[name] for s in self.lineage() if name in s.dimensions), None)

    def hides_unlimited(self, name: str) -> bool:
        """Whether a name stands for a dimension of fixed length here, and for an unlimited one further out."""
        found = [scope.dimensions[name] for scope in self.lineage() if name in scope.dimensions]
        return bool(found) and not found[0].unlimited and any(d.unlimited for d in found[1:])

    def of_key(self, key: ObjectKey) -> _Dimension | None:
        """The dimension of a dimension scale, if its name stands for it here."""
        found = next((s.by_key[key] for s in self.lineage() if key in s.by_key), None)
        return self._unless_shadowed(found)

    def of_id(self, dimid: int) -> _Dimension | None:
        """The dimension of a ``_Netcdf4Dimid``, if its name stands for it here."""
        found = next((s.by_id[dimid] for s in self.lineage() if dimid in s.by_id), None)
        return self._unless_shadowed(found)

    def _unless_shadowed(self, dimension: _Dimension | None) -> _Dimension | None:
        return dimension if dimension is not None and self.named(dimension.name) is dimension else None


def _declare(root: GroupRecord) -> list[_Scope]:
    """A scope for every group, each before the groups that it holds."""
    scopes: list[_Scope] = []
    waiting: list[tuple[GroupRecord, _Scope | None]] = [(root, None)]
    declared = 0
    while waiting:
        group, parent = waiting.pop()
        scope = _Scope(group, parent, declared)
        _declare_scales(scope)
        declared = scope.declared
        scopes.append(scope)
        waiting.extend((child, scope) for child in reversed(group.groups.values()))
    return scopes


def _declare_scales(scope: _Scope) -> None:
    for name, record in scope.group.datasets.items():
        if not _is_scale(record):
            continue
        dimid = _integers(record.attributes.get("_Netcdf4Dimid"))
        dimension = _Dimension(name, record.shape[0], record.max_shape[0] is None)
        scope.dimensions[name] = scope.by_id[(*dimid, scope.declared)[0]] = dimension
        scope.declared += 1
        # Of several links to one scale, NetCDF takes the last for its number, but the first for the scale itself.
        if record.key not in scope.by_key or dimid:
            scope.by_key[record.key] = dimension


def _grow_unlimited(scopes: list[_Scope]) -> None:
    """An unlimited dimension is as long as the longest variable along it."""
    for scope in scopes:
        for record in scope.group.datasets.values():
            for length, keys in zip(record.shape, record.dimension_scales, strict=False):
                dimension = _attached(scope, keys)
                if dimension is not None and dimension.unlimited:
                    dimension.length = max(dimension.length, length)


def _foreign_dimensions(scopes: list[_Scope]) -> dict[ObjectKey, _Dimension]:
    """The dimensions that groups which do not inherit them may use: of one length wherever they are declared."""
    lengths: defaultdict[str, set[int]] = defaultdict(set)
    for dimension in chain.from_iterable(scope.dimensions.values() for scope in scopes):
        lengths[dimension.name].add(dimension.length)
    declared = chain.from_iterable(scope.by_key.items() for scope in scopes)
    return {key: dimension for key, dimension in declared if len(lengths[dimension.name]) == 1}


# ── Axes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

type _Axes = list[_Dimension | None]


def _named_axes(scope: _Scope, record: DatasetRecord, foreign: Mapping[ObjectKey, _Dimension]) -> _Axes:
    """The dimension of every axis that has a usable one."""
    axes = _attached_axes(scope, record, foreign) if any(record.dimension_scales) else _numbered_axes(scope, record)
    fitting = [d if d is not None and d.fits(n) else None for d, n in zip(axes, record.shape, strict=True)]
    if not any(fitting) and _is_scale(record):
        fitting[0] = scope.dimensions[record.name]
    return fitting


def _numbered_axes(scope: _Scope, record: DatasetRecord) -> _Axes:
    """The axes of a dataset that names them by number, as multi-dimensional coordinate variables must."""
    dimids = _integers(record.attributes.get("_Netcdf4Coordinates"))
    if len(dimids) != len(record.shape):
        return [None] * len(record.shape)
    return [scope.of_id(dimid) for dimid in dimids]


def _attached_axes(scope: _Scope, record: DatasetRecord, foreign: Mapping[ObjectKey, _Dimension]) -> _Axes:
    axes: _Axes = [None] * len(record.shape)
    for axis, keys in enumerate(record.dimension_scales[: len(axes)]):
        axes[axis] = _attached(scope, keys) or _adopt(scope, keys, record.shape[axis], foreign)
    return axes


def _attached(scope: _Scope, keys: tuple[ObjectKey, ...]) -> _Dimension | None:
    """The dimension of the scales attached to an axis; NetCDF takes the last of them."""
    return next(filter(None, map(scope.of_key, reversed(keys))), None)


def _adopt(
    scope: _Scope, keys: tuple[ObjectKey, ...], length: int, foreign: Mapping[ObjectKey, _Dimension]
) -> _Dimension | None:
    """Use the name of a scale that lies in a group elsewhere, which NetCDF knows no way to do."""
    for key in reversed(keys):
        source = foreign.get(key)
        if source is not None and source.length == length and scope.named(source.name) is None:
            return scope.adopted.setdefault(source.name, _Dimension(source.name, length))
    return None


def _phony_dimensions(
    scope: _Scope, named: Mapping[str, _Axes], number: int, taken: Collection[str]
) -> list[_Dimension]:
    """Invent the dimensions that a group lacks, numbered from `number` on.

    Of every length as many are needed as one dataset has axes of it. Unlimited dimensions do not count towards
    that, as in h5netcdf.
    """
    fixed = [d for d in scope.dimensions.values() if not d.unlimited]
    needed: Counter[int] = Counter()
    for name, record in scope.group.datasets.items():
        if not all(named[name]):
            axes = zip(record.shape, named[name], strict=True)
            needed |= Counter(length for length, d in axes if d is None or d in fixed)
    present = Counter(d.length for d in fixed)
    lengths = [length for length, axes in needed.items() for _ in range(present[length], axes)]
    free = (name for name in map("phony_dim_{}".format, count(number)) if name not in taken)
    return [_Dimension(name, length) for length, name in zip(lengths, free, strict=False)]


def _dataset_views(
    scope: _Scope, named: Mapping[str, _Axes], phony: Iterable[_Dimension]
) -> Iterator[tuple[str, DatasetView]]:
    names_of: defaultdict[int, list[str]] = defaultdict(list)
    for dimension in chain(scope.dimensions.values(), phony):
        names_of[dimension.length].append(dimension.name)
    for name, record in scope.group.datasets.items():
        axes = _fill_axes(record, named[name], names_of)
        fixed = tuple(axis for axis, dimension in enumerate(axes) if scope.hides_unlimited(dimension))
        yield record.path, DatasetView(_variable_name(scope.group, name), axes, is_placeholder(record), fixed)


def _fill_axes(record: DatasetRecord, named: _Axes, names_of: Mapping[int, list[str]]) -> tuple[str, ...]:
    """Give each axis that has no dimension the first one of its length that the dataset does not use yet."""
    names = [None if dimension is None else dimension.name for dimension in named]
    for axis, length in enumerate(record.shape):
        if names[axis] is None:
            names[axis] = next(name for name in names_of[length] if name not in names)
    return tuple(filter(None, names))


# ── Names and attributes ─────────────────────────────────────────────────────────────────────────────────────────────


def _variable_name(group: GroupRecord, name: str) -> str:
    """The name without NetCDF's prefix, unless a variable or group has that name already."""
    plain = name.removeprefix(NOT_A_COORDINATE)
    if plain == name or not plain or plain in group.groups:
        return name
    other = group.datasets.get(plain)
    return plain if other is None or is_placeholder(other) else name


def _is_scale(record: DatasetRecord) -> bool:
    return bool(record.shape) and _text(record.attributes.get("CLASS")) == "DIMENSION_SCALE"


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _integers(value: object) -> tuple[int, ...]:
    array = np.atleast_1d(np.asarray(value))
    return tuple(map(int, array)) if value is not None and array.ndim == 1 and array.dtype.kind in "iu" else ()
