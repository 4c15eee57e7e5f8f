"""A group as a dataset of references."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import xarray as xr

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.combine.joining import join_arrays
from virtualzarr_refs.combine.parts import parts_of
from virtualzarr_refs.combine.values import MAX_READ
from virtualzarr_refs.errors import NodeNotFoundError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.virtual_xarray.duck_array import DuckArray, shown_type

MAX_LOADED = 1 << 20
"""Bytes of a coordinate of several dimensions beyond which it stays references."""


CHARACTER = np.dtype("S1")
"""Whether arrays of these are shown as strings depends on their neighbours."""

SKIPPED = "skipped"
"""Where the encoding of a dataset keeps what a scan left out."""


def open_virtual(
    group: VirtualGroup,
    *,
    path: str = "",
    loadable_variables: Iterable[str] = (),
    drop_variables: Iterable[str] = (),
    storage_options: Mapping[str, object] | None = None,
) -> xr.Dataset:
    """Show a group as xarray does, with references in place of values.

    Parameters
    ----------
    group : VirtualGroup
        The group.
    path : str
        Of a group beneath that is shown instead.
    loadable_variables : iterable of str
        Variables to be read, besides those that always are: coordinates of dimensions, small coordinates, single
        values, and whatever xarray decodes to more than unpacked numbers, such as times.
    drop_variables : iterable of str
        Variables to leave out.
    storage_options : mapping, optional
        For reading.

    Raises
    ------
    NodeNotFoundError
        If there is no such group, or no variable of a name.
    UnsupportedError
        If a variable that has to be read is too large.
    SourceError, DecodeError
        If one cannot be read.
    """
    asked = frozenset(loadable_variables)
    with xr.open_dataset(
        cast("Any", group),
        engine="virtualzarr_refs",
        group=path,
        drop_variables=[*drop_variables],
        storage_options=storage_options,
    ) as shown:
        for name in asked - set(cast("Iterable[str]", shown.variables)):
            raise NodeNotFoundError("there is no such variable to be read", node=name)
        variables = {
            name: _variable(shown, name, cast("VirtualArray", group[f"{path}/{name}"]), asked, storage_options)
            for name in cast("Iterable[str]", shown.variables)
        }
        coordinates = {name: variables.pop(name) for name in cast("Iterable[str]", shown.coords)}
        virtual = xr.Dataset(variables, coordinates, shown.attrs)
        virtual.encoding = {**shown.encoding, **({SKIPPED: group.skipped} if group.skipped else {})}
        return virtual


def _variable(
    shown: xr.Dataset,
    name: str,
    array: VirtualArray,
    asked: frozenset[str],
    storage_options: Mapping[str, object] | None,
) -> xr.Variable:
    variable = shown.variables[name]
    if name in asked or _is_read(shown, name, array):
        if variable.nbytes > MAX_READ:
            raise UnsupportedError(
                f"it has to be read, and its {variable.nbytes} bytes are too many; pass drop_variables", node=name
            )
        return variable.compute()
    duck = DuckArray.of(_grown(array, variable.shape), storage_options)
    return xr.Variable(variable.dims, duck, variable.attrs, variable.encoding)


def _is_read(shown: xr.Dataset, name: str, array: VirtualArray) -> bool:
    """Whether a variable is small, names elements, or stands for more than unpacked numbers."""
    variable = shown.variables[name]
    is_decoded = variable.dtype != shown_type(array) or variable.ndim != len(array.shape) or array.dtype == CHARACTER
    is_small_coordinate = name in shown.coords and variable.nbytes <= MAX_LOADED
    return not variable.dims or name in shown.dims or is_decoded or is_small_coordinate


def _grown(array: VirtualArray, shape: Shape) -> VirtualArray:
    """The array as long as its unlimited dimensions are, and without what only its own group can tell of it."""
    encoding = {name: value for name, value in array.metadata.encoding.items() if name != "fixed_axes"}
    grown = VirtualArray(replace(array.metadata, dimension_names=None, encoding=encoding), array.manifest)
    for axis, length in enumerate(shape):
        if length != grown.shape[axis]:
            grown = join_arrays(parts_of("", grown, length, axis), axis).array
    return grown
