"""Where the values of virtual datasets come from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from typing import Any

from h5py import h5d, h5f, h5i

from scanners.hdf5.opening import HDF5_ERRORS
from scanners.hdf5.tree import object_key
from virtualzarr_refs.errors import UnsupportedError

MAX_DEPTH = 8
"""Virtual datasets over virtual datasets; deeper ones are left out."""


def check_sources(dsid: Any, above: tuple[tuple[int, int], ...] = ()) -> None:  # noqa: ANN401  h5py.h5d.DatasetID
    """Make sure that a virtual dataset does not lead back to itself: libhdf5 would follow it until it crashes.

    Raises
    ------
    UnsupportedError
        If it does, or if its sources lie too deep.
    """
    key = object_key(dsid)
    if key in above:
        raise UnsupportedError("its values come from itself", feature="virtual dataset")
    if len(above) > MAX_DEPTH:
        raise UnsupportedError(f"it is virtual over more than {MAX_DEPTH} others", feature="virtual dataset")
    for source in _sources(dsid):
        check_sources(source, (*above, key))


def _sources(dsid: Any) -> Iterator[Any]:  # noqa: ANN401
    """The sources that there are, as open datasets; none of a dataset that is not virtual."""
    properties = dsid.get_create_plist()
    if properties.get_layout() != h5d.VIRTUAL:
        return
    mappings = range(properties.get_virtual_count())
    names = {(os.fsencode(properties.get_virtual_filename(i)), _name(properties, i)) for i in mappings}
    file = h5i.get_file_id(dsid)
    for file_name, name in sorted(names):
        for block in count() if b"%" in file_name + name else (0,):
            source = _open(file, _numbered(file_name, block), _numbered(name, block))
            if source is None:
                break
            yield source


def _name(properties: Any, mapping: int) -> bytes:  # noqa: ANN401
    name = properties.get_virtual_dsetname(mapping)
    return name if isinstance(name, bytes) else os.fsencode(name)


def _numbered(name: bytes, block: int) -> bytes:
    """The name of one block's source, where a mapping stands for many (``H5Pset_virtual``)."""
    return b"%".join(part.replace(b"%b", b"%d" % block) for part in name.split(b"%%"))


def _open(file: Any, file_name: bytes, name: bytes) -> Any:  # noqa: ANN401
    for path in _candidates(h5f.get_name(file), file_name):
        try:
            holder = file if file_name == b"." else h5f.open(path, h5f.ACC_RDONLY, file.get_access_plist())
            return h5d.open(holder, name)
        except HDF5_ERRORS:
            continue
    return None


def _candidates(file: bytes, name: bytes) -> list[bytes]:
    """Where libhdf5 looks for the file of a source."""
    folders = [os.fsencode(os.environ.get("HDF5_VDS_PREFIX", "")), os.path.dirname(file), b""]  # noqa: PTH120  bytes
    names = [name, os.path.basename(name)] if os.path.isabs(name) else [name]  # noqa: PTH117, PTH119
    return [os.path.join(folder, each) for each in names for folder in folders]  # noqa: PTH118
