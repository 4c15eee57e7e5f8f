"""What a scan reads from an HDF5 file, before anything is decided about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from h5py import h5d

type ObjectKey = tuple[int, int]
"""Identity of an HDF5 object: number of its file among the open ones, address of its header."""


@dataclass(frozen=True, slots=True, eq=False)
class DatasetRecord:
    """A dataset, as one of its links shows it.

    Parameters
    ----------
    path : str
        Path of the link from the root, without a leading slash.
    key : tuple of int
        Identity of the dataset; two links to one dataset share it.
    id : h5py.h5d.DatasetID
        The open dataset.
    file : str
        Name of the file that holds it; another file's, if an external link led here.
    shape : tuple of int
        Of its dataspace, in elements; empty for a scalar.
    max_shape : tuple of (int or None)
        None along axes that can grow without limit.
    attributes : mapping of str to object
        Every attribute, HDF5's and NetCDF's own included: strings, lists of strings, NumPy scalars and arrays.
    dimension_scales : tuple of tuple of ObjectKey
        For every axis the dimension scales that are attached to it (attribute ``DIMENSION_LIST``).
    """

    path: str
    key: ObjectKey
    id: h5d.DatasetID
    file: str
    shape: tuple[int, ...]
    max_shape: tuple[int | None, ...]
    attributes: Mapping[str, Any]
    dimension_scales: tuple[tuple[ObjectKey, ...], ...] = ()

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, eq=False)
class GroupRecord:
    """A group, as one of its links shows it.

    Parameters
    ----------
    path : str
        Path of the link from the root, without a leading slash; empty for the root.
    attributes : mapping of str to object
        Every attribute.
    datasets : dict of str to DatasetRecord
        By name of the link, in the order that NetCDF lists them.
    groups : dict of str to GroupRecord
        By name of the link.
    """

    path: str
    attributes: Mapping[str, Any]
    datasets: dict[str, DatasetRecord] = field(default_factory=dict[str, DatasetRecord])
    groups: dict[str, GroupRecord] = field(default_factory=dict[str, "GroupRecord"])
