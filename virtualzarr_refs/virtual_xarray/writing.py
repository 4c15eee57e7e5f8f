"""A dataset of references as a group."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np
import xarray as xr
from xarray.conventions import decode_cf_variable, encode_cf_variable, encode_dataset_coordinates

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.codecs.names import PACKING
from virtualzarr_refs.combine.values import MAX_READ
from virtualzarr_refs.errors import UnsupportedError, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.metadata import GroupMetadata
from virtualzarr_refs.virtual_xarray.duck_array import DuckArray, shown_type
from virtualzarr_refs.virtual_xarray.inlining import encode_checked, from_memory
from virtualzarr_refs.virtual_xarray.opening import CHARACTER, SKIPPED


def from_xarray(data: xr.Dataset | xr.DataTree) -> VirtualGroup:
    """Turn a dataset of references into a group.

    Parameters
    ----------
    data : xarray.Dataset or xarray.DataTree
        From ``group.to_xarray(virtual=True)``. Values in memory are kept inline, encoded as their ``encoding`` says; of
        references the packing stays, whatever ``encoding`` says.

    Returns
    -------
    VirtualGroup
        ``to_xarray()`` gives the same values.

    Raises
    ------
    UnsupportedError
        If values in memory are too large, or belong to dask; or if references were cast.
    NotRepresentableError
        If an attribute cannot be written.
    """
    if isinstance(data, xr.DataTree):
        children = {name: from_xarray(child) for name, child in data.children.items()}
        return replace(from_xarray(data.to_dataset(inherit=False)), groups=children)
    variables, attributes = encode_dataset_coordinates(_without_listed_coordinates(data))
    plain, types = encode_checked(attributes)
    unlimited = tuple(dim for dim in data.encoding.get("unlimited_dims", ()) if dim in data.dims)
    metadata = GroupMetadata(plain, types, unlimited, tuple(data.encoding.get(SKIPPED, ())))
    return VirtualGroup(metadata, {str(name): _array(str(name), variable) for name, variable in variables.items()})


def _without_listed_coordinates(data: xr.Dataset) -> xr.Dataset:
    """The dataset without the lists of coordinates that variables were read with: they may have other names by now."""
    plain = data.copy()
    for variable in plain.variables.values():
        variable.encoding = {name: value for name, value in variable.encoding.items() if name != "coordinates"}
    plain.encoding = {}
    return plain


def _array(name: str, variable: xr.Variable) -> VirtualArray:
    try:
        data = None if variable.chunks else variable.data
        return _referring(variable, data) if isinstance(data, DuckArray) else _inlined(name, variable)
    except VirtualZarrError as error:
        raise error.at(node=name) from None


def _referring(variable: xr.Variable, data: DuckArray) -> VirtualArray:
    own = data.array.metadata
    if data.dtype != shown_type(data.array):
        raise UnsupportedError(f"references to {shown_type(data.array)} were cast to {data.dtype}; cast what is read")
    added = [name for name in PACKING if name in variable.attrs]
    if added and own.dtype.kind != "V":
        raise UnsupportedError(
            f"its attribute {added[0]!r} would change what its values are; delete it, or change values when read"
        )
    kept = {*PACKING, *cast("list[str]", own.encoding.get("derived_attributes", []))}
    plain, types = encode_checked(variable.attrs, own.dtype)
    metadata = replace(
        own,
        attributes=plain | _only(own.attributes, kept),
        attribute_types=types | _only(own.attribute_types, kept),
        dimension_names=tuple(map(str, variable.dims)),
    )
    return VirtualArray(metadata, data.array.manifest)


def _only(mapping: Mapping[str, JSON], names: set[str]) -> dict[str, JSON]:
    return {name: value for name, value in mapping.items() if name in names}


def _inlined(name: str, variable: xr.Variable) -> VirtualArray:
    if variable.chunks:
        raise UnsupportedError("it belongs to dask and would have to be computed; load it first")
    if variable.nbytes > MAX_READ:
        raise UnsupportedError(f"its {variable.nbytes} bytes in memory are too many to be kept beside references")
    encoded = _encoded(name, variable.to_base_variable().load())
    values, dimensions = np.asarray(encoded.values), tuple(map(str, encoded.dims))
    if values.dtype == CHARACTER and values.ndim:  # with an axis for the characters of each, or xarray would join all
        return from_memory(values[..., None], encoded.attrs, (*dimensions, "string1"))
    return from_memory(values, encoded.attrs, dimensions)


def _encoded(name: str, variable: xr.Variable) -> xr.Variable:
    """A variable as it is stored: by its encoding if that keeps every value, or else by one that does."""
    for encoding in ({"_FillValue": None, **variable.encoding}, {"_FillValue": None}, {}):
        candidate = variable.copy()
        candidate.encoding = dict(encoding)
        encoded = _faithful(name, candidate)
        if encoded is not None:
            return encoded
    raise UnsupportedError(f"values of {variable.dtype} cannot be stored as they are; change their type")


def _faithful(name: str, variable: xr.Variable) -> xr.Variable | None:
    """The encoded variable, or None if that loses anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether values survive is seen below
        try:
            encoded = _without_objects(encode_cf_variable(variable, name=name))
            decoded = decode_cf_variable(name, encoded.copy(), concat_characters=False)
        except (ValueError, TypeError, OverflowError):
            return None
    is_same = decoded.dtype == variable.dtype or {decoded.dtype.kind, variable.dtype.kind} <= set("OSTU")
    return encoded if is_same and decoded.equals(variable) else None


def _without_objects(variable: xr.Variable) -> xr.Variable:
    """The variable with bytes as bytes of one length; text stays.

    Raises
    ------
    TypeError
        If values are objects of another kind.
    """
    kinds: set[type] = {type(item) for item in variable.values.flat} if variable.dtype.kind == "O" else set()
    if kinds == {bytes}:
        return variable.copy(data=variable.values.astype(np.bytes_))
    if kinds - {str}:
        raise TypeError(f"{kinds} cannot be stored")
    return variable
