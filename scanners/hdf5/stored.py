"""What a dataset is made of, gathered before anything is decided, and what is decided."""

from __future__ import annotations

from dataclasses import dataclass, field

from scanners.hdf5.datatypes import ValueType
from scanners.hdf5.header import HeaderReader
from scanners.hdf5.pipelines import Pipeline
from scanners.hdf5.properties import DatasetProperties
from scanners.hdf5.records import DatasetRecord
from scanners.hdf5.superblock import chunk_tree_k
from virtualzarr_refs.chunk_grid import RegularGrid, Shape
from virtualzarr_refs.codecs.hdf5_filters import HDF5Filter
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.scanning import ScanOptions


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The file that a dataset lies in.

    Parameters
    ----------
    url : str
        As references name it.
    size : int
        In bytes.
    headers : HeaderReader
        Reads its object headers.
    """

    url: str
    size: int
    headers: HeaderReader
    _known: list[int] = field(default_factory=list[int])

    @property
    def chunk_tree_k(self) -> int:
        """Half the entries of a node of a version 1 B-tree; see `superblock.chunk_tree_k`."""
        if not self._known:
            self._known.append(chunk_tree_k(self.headers))
        return self._known[0]


@dataclass(frozen=True, slots=True)
class Stored:
    """A dataset with everything that decides how it is shown.

    Parameters
    ----------
    record : DatasetRecord
        From the walk.
    facts : SourceFacts
        Its file.
    properties : DatasetProperties
        What it was created with.
    options : ScanOptions
        What the user asked for.
    """

    record: DatasetRecord
    facts: SourceFacts
    properties: DatasetProperties
    options: ScanOptions

    @property
    def value_type(self) -> ValueType:
        """Its datatype."""
        return self.properties.value_type

    @property
    def filters(self) -> tuple[HDF5Filter, ...]:
        """Its pipeline."""
        return self.properties.filters

    @property
    def shape(self) -> Shape:
        """Of the Zarr array: the dataset's axes, then those of an array type."""
        return self.record.shape + self.value_type.axes


@dataclass(frozen=True, slots=True)
class Placed:
    """What has been decided: the grid, the codecs, and where the chunks lie."""

    grid: RegularGrid
    codecs: Pipeline
    manifest: Manifest
    materialised: str = ""


def with_axes(grid: RegularGrid, axes: Shape) -> RegularGrid:
    """A grid with the axes of an array type behind the dataset's own, one chunk each."""
    return RegularGrid(grid.shape + axes, grid.chunk_shape + tuple(max(1, n) for n in axes)) if axes else grid
