"""What a scan reads from an HDF5 file, before anything is decided about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from h5py import h5d, h5g

from scanners.hdf5.header import ObjectHeader
from scanners.hdf5.opening import h5py_errors

type ObjectKey = tuple[int, int]
"""Identity of an HDF5 object: number of its file among the open ones, address of its header."""


@dataclass(slots=True, eq=False)
class DatasetHandle:
    """A dataset that libhdf5 opens when it is first asked something about it.

    Parameters
    ----------
    group : h5py.h5g.GroupID
        The group that links to it.
    name : bytes
        Of the link.
    """

    group: h5g.GroupID
    name: bytes
    _id: h5d.DatasetID | None = None

    @property
    def id(self) -> h5d.DatasetID:
        """The open dataset.

        Raises
        ------
        FormatError
            If libhdf5 cannot open it.
        """
        if self._id is None:
            self._id = self._open()
        return self._id

    def _open(self) -> h5d.DatasetID:
        with h5py_errors("the object cannot be opened"):
            return h5d.open(self.group, self.name)


@dataclass(frozen=True, slots=True, eq=False)
class DatasetRecord:
    """A dataset, as one of its links shows it.

    Parameters
    ----------
    path : str
        Path of the link from the root, without a leading slash.
    key : tuple of int
        Identity of the dataset; two links to one dataset share it.
    handle : DatasetHandle
        Opens the dataset.
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
    header : ObjectHeader, optional
        Its object header, where that was read.
    """

    path: str
    key: ObjectKey
    handle: DatasetHandle
    file: str
    shape: tuple[int, ...]
    max_shape: tuple[int | None, ...]
    attributes: Mapping[str, Any]
    dimension_scales: tuple[tuple[ObjectKey, ...], ...] = ()
    header: ObjectHeader | None = None

    @property
    def id(self) -> h5d.DatasetID:
        """The open dataset; see `DatasetHandle.id`."""
        return self.handle.id

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

    def walk_datasets(self) -> Iterator[DatasetRecord]:
        """All datasets of the group and of the groups beneath."""
        yield from self.datasets.values()
        for child in self.groups.values():
            yield from child.walk_datasets()
