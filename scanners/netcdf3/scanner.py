"""The scanner for NetCDF classic files."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from scanners.contiguous import contiguous_manifest, cut
from scanners.netcdf3.header import MAGIC, RawValue, Variable, read_header
from scanners.netcdf3.layout import Placement, lay_out
from scanners.netcdf3.truth import NetCDF3Truth, open_netcdf4
from scanners.netcdf3.types import VERSIONS, ExternalType
from scanners.text import decode_text
from virtualzarr_refs.attributes import FILL_VALUE, encode_attributes
from virtualzarr_refs.chunk_grid import JSON, RegularGrid
from virtualzarr_refs.data_types import encode_data_type, encode_scalar
from virtualzarr_refs.errors import FormatError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup, is_node_name
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata
from virtualzarr_refs.scanning import ScanOptions
from virtualzarr_refs.skip_log import SkipLog
from virtualzarr_refs.sources import Source


@dataclass(frozen=True, slots=True)
class NetCDF3Scanner:
    """Reads NetCDF classic, 64-bit offset and 64-bit data (CDF-5) files."""

    name: str = "netcdf3"

    def recognises(self, head: bytes, url: str) -> bool:  # noqa: ARG002  the url tells nothing more
        """Whether `head` begins as a NetCDF classic file does."""
        return head[:3] == MAGIC and len(head) > 3 and head[3] in VERSIONS

    def scan(self, source: Source, options: ScanOptions) -> VirtualGroup:
        """Read the layout of a whole file.

        Raises
        ------
        FormatError
            If the header breaks the rules of the format.
        VirtualZarrError
            Where `options.strict`, if any variable cannot be shown.
        """
        size = source.identity().size
        header = read_header(source)
        skips = SkipLog(options.strict, options.doubts)
        arrays: dict[str, VirtualArray] = {}
        for placement in lay_out(header, size):
            name = placement.variable.name
            with skips.node(name):
                arrays[name] = build_array(placement, source.url, size, options.target_chunk_size)
        attributes, types = encode_attributes(_shown(header.attributes))
        unlimited = tuple(dimension.name for dimension in header.dimensions if dimension.is_record)
        return VirtualGroup(GroupMetadata(attributes, types, unlimited, tuple(skips.records)), arrays)

    @contextmanager
    def open_truth(self, source: Source) -> Generator[NetCDF3Truth]:
        """Open a file for comparison with what the NetCDF library reads.

        Raises
        ------
        UnsupportedError
            If netCDF4-python is not installed.
        FormatError
            If the library cannot open the file.
        """
        with open_netcdf4(source) as dataset:
            yield NetCDF3Truth(dataset)


def build_array(placement: Placement, url: str, file_size: int, target_chunk_size: int) -> VirtualArray:
    """Show a variable as a virtual array.

    Parameters
    ----------
    placement : Placement
        The variable, and where its values lie.
    url : str
        Of the file.
    file_size : int
        In bytes.
    target_chunk_size : int
        Bytes that a chunk is aimed at.

    Raises
    ------
    UnsupportedError
        If its name or its rank cannot be shown.
    FormatError
        If its values reach beyond the end of the file.
    """
    _check(placement, file_size)
    variable = placement.variable
    grid = _grid(placement, target_chunk_size)
    attributes = _shown(variable.attributes, variable.type)
    plain, types = encode_attributes(attributes, variable.type.native)
    metadata = ArrayMetadata(
        data_type=encode_data_type(variable.type.native),
        chunk_grid=grid,
        fill_value=encode_scalar(_fill_value(variable), variable.type.native),
        codecs=(_codec(variable.type),),
        attributes=plain,
        dimension_names=tuple(axis.name for axis in variable.dimensions),
        attribute_types=types,
        encoding={"layout": "records" if variable.is_record else "contiguous"},
    )
    return VirtualArray(metadata, _manifest(placement, grid, url))


MAX_AXES = 64
"""Axes that an array of NumPy 2 may have."""


def _check(placement: Placement, file_size: int) -> None:
    variable = placement.variable
    if not is_node_name(variable.name):
        raise UnsupportedError(f"no Zarr array can have the name {variable.name!r}")
    if len(variable.dimensions) > MAX_AXES:
        raise UnsupportedError(f"NumPy has no arrays of {len(variable.dimensions)} axes")
    # The NetCDF library would show zeros there.
    if placement.stop > file_size:
        raise FormatError(
            f"the file is cut short: it has {file_size} bytes, and the values end at byte {placement.stop}; "
            "get a whole copy",
            offset=file_size,
        )


def _grid(placement: Placement, target: int) -> RegularGrid:
    """Pieces near the target size; none reaches from one record to the next but where nothing lies between them."""
    shape, item_size = placement.shape, placement.variable.type.size
    if not placement.record_count:
        return RegularGrid(shape, tuple(max(1, length) for length in shape))
    if placement.is_one_piece:
        return cut(shape, item_size, target)
    return RegularGrid(shape, (1, *cut(shape[1:], item_size, target).chunk_shape))


def _manifest(placement: Placement, grid: RegularGrid, url: str) -> Manifest:
    variable = placement.variable
    if not placement.record_count:
        return Manifest.missing(grid.grid_shape)
    if placement.is_one_piece:
        return contiguous_manifest(grid, url, variable.begin, variable.type.size)
    inner = RegularGrid(grid.shape[1:], grid.chunk_shape[1:])
    first = contiguous_manifest(inner, url, variable.begin, variable.type.size)
    records = np.arange(placement.record_count, dtype=np.uint64) * np.uint64(placement.record_size)
    return Manifest(
        (url,),
        np.zeros(grid.grid_shape, np.uint32),
        np.add.outer(records, first.offset),
        np.full(grid.grid_shape, first.length.flat[0], np.uint64),
    )


def _codec(type_: ExternalType) -> dict[str, JSON]:
    if type_.size == 1:
        return {"name": "bytes"}
    return {"name": "bytes", "configuration": {"endian": "big"}}


def _fill_value(variable: Variable) -> Any:  # noqa: ANN401  a scalar of any type
    """What the NetCDF library writes where a variable has no values yet.

    No chunk of a single file is missing. Files that are joined may lack some.
    """
    given = variable.attributes.get(FILL_VALUE)
    if isinstance(given, bytes):
        return given if variable.type.is_char and len(given) == 1 else variable.type.default_fill
    is_fitting = given is not None and given.size == 1 and given.dtype == variable.type.native
    return given[0] if given is not None and is_fitting else variable.type.default_fill


def _shown(attributes: Mapping[str, RawValue], type_: ExternalType | None = None) -> dict[str, Any]:
    """Attributes as netCDF4-python gives them: text, scalars and arrays.

    ``_FillValue`` of a variable of characters stays bytes.
    """
    is_char = type_ is not None and type_.is_char
    return {name: _value(raw, is_fill=is_char and name == FILL_VALUE) for name, raw in attributes.items()}


def _value(raw: RawValue, *, is_fill: bool) -> Any:  # noqa: ANN401
    if isinstance(raw, bytes):
        return raw if is_fill else decode_text(raw).replace("\0", "")
    return raw[0] if raw.size == 1 else raw
