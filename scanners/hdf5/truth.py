"""What h5py reads from a file, to compare with what its references give.

Plain h5py: nothing here knows how a scan lays out chunks or chooses codecs. Only the names are the scan's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import h5py
import numpy as np
from h5py import h5d, h5l, h5o, h5p, h5r, h5s, h5t
from numpy.typing import NDArray

from scanners.hdf5.dimensions import NOT_A_COORDINATE, NOT_A_VARIABLE
from scanners.hdf5.opening import HDF5_ERRORS, h5py_errors
from scanners.hdf5.written import Written
from scanners.text import decode_text
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.scanning import TrueArray


@dataclass(frozen=True, slots=True)
class HDF5Truth:
    """An open HDF5 file.

    Parameters
    ----------
    file : h5py.File
        The file.
    is_local : bool
        Whether it may lead to other files; one from elsewhere must not lead to local ones.
    """

    file: h5py.File
    is_local: bool
    _names: dict[str, dict[str, bytes]] = field(default_factory=dict[str, dict[str, bytes]], init=False)

    def find(self, path: str) -> TrueArray | None:
        """The dataset that NetCDF shows at `path`, or None.

        Raises
        ------
        UnsupportedError
            If its values lie in another file, and the file is not local.
        FormatError
            If it cannot be opened.
        """
        parent, _, name = path.rpartition("/")
        with h5py_errors("the dataset cannot be opened"):
            group = self._group(parent)
            found = None if group is None else self._dataset(group, parent, name)
            return None if found is None else self._true_array(found)

    def _true_array(self, dataset: Any) -> TrueArray:  # noqa: ANN401  h5py.Dataset
        if not self.is_local and self._leads_elsewhere(dataset):
            raise UnsupportedError("a remote file's data in other files is not read; check a local copy")
        dtype = cast("np.dtype[Any]", dataset.dtype)
        shown = np.dtype(object) if dtype.base.hasobject else dtype.base
        shape = (*dataset.shape, *dtype.shape)
        return TrueArray(shape, shown, partial(_read, dataset), Written(dataset).is_unwritten)

    def _group(self, path: str) -> Any:  # noqa: ANN401  h5py.Group
        group: Any = self.file
        walked = ""
        for name in filter(None, path.split("/")):
            key = self._key(group, walked, name)
            if key is None or self._kind(group, key) != h5o.TYPE_GROUP:
                return None
            group = group[key]
            walked = f"{walked}/{name}"
        return group

    def _dataset(self, group: Any, path: str, name: str) -> Any:  # noqa: ANN401  h5py.Dataset
        """The dataset of a name; without it, or where it only stands for a dimension, the one with NetCDF's prefix."""
        for shown in (name, f"{NOT_A_COORDINATE}{name}"):
            key = self._key(group, path, shown)
            if key is not None and self._kind(group, key) == h5o.TYPE_DATASET:
                dataset = _open(group, key)
                if not _is_placeholder(dataset):
                    return dataset
        return None

    def _key(self, group: Any, path: str, name: str) -> bytes | None:  # noqa: ANN401
        """The name of a link as the file has it, which need not be UTF-8."""
        path = path.strip("/")
        if path not in self._names:
            self._names[path] = {decode_text(key): _encoded(key) for key in cast("Iterator[str | bytes]", group)}
        return self._names[path].get(name)

    def _kind(self, group: Any, key: bytes) -> int | None:  # noqa: ANN401
        """The type of what a link leads to (``H5O_type_t``); None if that is nothing, or not to be followed."""
        try:
            if not self.is_local and group.id.links.get_info(key).type not in _WITHIN_FILE:
                return None
            return h5o.get_info(group.id, key).type
        except HDF5_ERRORS:
            return None

    def _leads_elsewhere(self, dataset: Any) -> bool:  # noqa: ANN401
        same_file = dataset.file.filename == self.file.filename
        return not same_file or dataset.external is not None or dataset.is_virtual


_WITHIN_FILE = (h5l.TYPE_HARD, h5l.TYPE_SOFT)
"""Links that stay within their file."""


def _encoded(name: str | bytes) -> bytes:
    return name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name


def _open(group: Any, key: bytes) -> Any:  # noqa: ANN401
    """The dataset, opened so that libhdf5 looks for external storage beside the file, not in the working directory."""
    dataset: Any = group[key]
    if dataset.external is None:
        return dataset
    dataset.id.close()  # libhdf5 takes another prefix only while nobody has the dataset open
    access = h5p.create(h5p.DATASET_ACCESS)
    access.set_efile_prefix(b"${ORIGIN}")
    return h5py.Dataset(h5d.open(group.id, key, access))


def _is_placeholder(dataset: Any) -> bool:  # noqa: ANN401
    """Whether a dataset only stands for a dimension without variable, and is not shown."""
    kind, name = (dataset.attrs.get(attribute, b"") for attribute in ("CLASS", "NAME"))
    return _text(kind) == "DIMENSION_SCALE" and _text(name).startswith(NOT_A_VARIABLE)


def _text(value: Any) -> str:  # noqa: ANN401
    return decode_text(value) if isinstance(value, bytes | str) else ""


def _read(dataset: Any, selection: tuple[slice, ...]) -> NDArray[Any]:  # noqa: ANN401
    """Read a region; the axes of an array type come after the dataset's own."""
    rank = len(dataset.shape)
    with h5py_errors("h5py cannot read the values"):
        read = _read_opaque if dataset.id.get_type().get_class() == h5t.OPAQUE else _read_plain
        values = read(dataset, selection[:rank])
    values = values[(..., *selection[rank:])]
    return _texts(values, dataset) if values.dtype.hasobject else values


def _read_plain(dataset: Any, selection: tuple[slice, ...]) -> NDArray[Any]:  # noqa: ANN401
    return np.asarray(dataset[selection or ...])


def _read_opaque(dataset: Any, selection: tuple[slice, ...]) -> NDArray[Any]:  # noqa: ANN401
    """Opaque values as they are stored: h5py converts only those that have a tag of its own."""
    shape = tuple(part.stop - part.start for part in selection)
    values = np.empty(shape, dataset.dtype)
    place = dataset.id.get_space()
    if shape:
        place.select_hyperslab(tuple(part.start for part in selection), shape)
    memory = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
    dataset.id.read(memory, place, values, dataset.id.get_type())
    return values


def _texts(values: NDArray[Any], dataset: Any) -> NDArray[np.object_]:  # noqa: ANN401
    text = partial(_target, dataset) if h5py.check_ref_dtype(dataset.dtype.base) else decode_text
    texts = np.empty(values.size, dtype=object)
    texts[:] = [text(value) if value else "" for value in values.reshape(-1).tolist()]
    return texts.reshape(values.shape)


def _target(dataset: Any, reference: Any) -> str:  # noqa: ANN401
    """The path of what an object reference leads to."""
    with h5py_errors("an object reference cannot be followed"):
        return decode_text(h5r.get_name(reference, dataset.id) or b"")
