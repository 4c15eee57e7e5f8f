"""Walking the links of an HDF5 file into records."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

import h5py
from h5py import h5, h5d, h5f, h5g, h5i, h5l, h5p, h5s

from scanners.hdf5.attribute_messages import attribute_messages
from scanners.hdf5.attributes import DIMENSION_LIST, attached_scales, read_attributes, recall_attributes
from scanners.hdf5.familiar import Memory, extent_key
from scanners.hdf5.global_heap import GlobalHeaps
from scanners.hdf5.header import ObjectHeader
from scanners.hdf5.opening import HDF5_ERRORS, h5py_errors
from scanners.hdf5.records import DatasetHandle, DatasetRecord, GroupRecord, ObjectKey
from scanners.text import decode_text
from virtualzarr_refs.errors import FormatError, UnsupportedError
from virtualzarr_refs.hierarchy import is_node_name
from virtualzarr_refs.skip_log import SkipLog

MAX_DEPTH = 100
"""Groups within groups; deeper ones are left out."""

MAX_REPEATED_GROUPS = 10_000
"""Times that groups are shown again under further links; links that fan out could show them without end."""


@dataclass(slots=True)
class Walk:
    """The walk over one file.

    Parameters
    ----------
    skips : SkipLog
        Told of what is left out.
    follow_external : bool
        Whether links to other files may be followed; a file from elsewhere must not lead to local ones.
    heaps : GlobalHeaps, optional
        Of the file itself. With them its object headers are read here too, so that libhdf5 need not open what is
        described in familiar ways.
    """

    skips: SkipLog
    follow_external: bool = True
    heaps: GlobalHeaps | None = None
    seen: set[ObjectKey] = field(default_factory=set[ObjectKey])
    repeated: int = 0
    own: tuple[int, str] = (-1, "")

    def root(self, file: h5py.File) -> GroupRecord:
        """Read the whole tree.

        Raises
        ------
        FormatError
            If not even the root group can be read.
        """
        with h5py_errors("the root group cannot be read", offset=0):
            gid = h5g.open(file.id, b"/")
            key = object_key(gid)
            self.own = key[0], decode_text(h5f.get_name(gid))
        return self._group(gid, "", (key,))

    def _group(self, gid: h5g.GroupID, path: str, ancestors: tuple[ObjectKey, ...]) -> GroupRecord:
        record = GroupRecord(path, read_attributes(gid, path, self.skips))
        with h5py_errors("the links of a group cannot be listed"):
            names = _link_names(gid)
        for raw in names:
            name = decode_text(raw)
            child = f"{path}/{name}" if path else name
            with self.skips.node(child):
                self._link(gid, raw, name, child, record, ancestors)
        return record

    def _link(
        self,
        gid: h5g.GroupID,
        raw: bytes,
        name: str,
        path: str,
        parent: GroupRecord,
        ancestors: tuple[ObjectKey, ...],
    ) -> None:
        if not is_node_name(name):
            raise UnsupportedError("the name cannot be a Zarr node's; rename the object to have it", feature=repr(name))
        if name in parent.datasets or name in parent.groups:
            raise UnsupportedError("another object of the group has this name too, in another encoding")
        info = self._look_up(gid, raw, path)
        if info is None or info.type == h5g.TYPE:
            return  # neither a dangling soft link nor a committed datatype carries values
        with h5py_errors("the object cannot be opened"):
            key = _key(info)
            if info.type == h5g.DATASET:
                parent.datasets[name] = self._dataset(DatasetHandle(gid, raw), path, key)
            elif self._may_enter(key, path, ancestors):
                parent.groups[name] = self._group(h5g.open(gid, raw), path, (*ancestors, key))

    def _look_up(self, gid: h5g.GroupID, raw: bytes, path: str) -> h5g.GroupStat | None:
        with h5py_errors("a link cannot be read"):
            kind = gid.links.get_info(raw).type
        if kind == h5l.TYPE_EXTERNAL and not self.follow_external:
            raise UnsupportedError("a remote file's links to other files are not followed", feature="external link")
        if kind == h5l.TYPE_EXTERNAL:
            self.skips.doubts.append(path)
        try:
            return h5g.get_objinfo(gid, raw)
        except HDF5_ERRORS as error:
            if kind == h5l.TYPE_SOFT:
                self.skips.note(path, f"a soft link to nothing: {_soft_target(gid, raw)}")
                return None
            if kind == h5l.TYPE_EXTERNAL:
                raise UnsupportedError(_external_message(gid, raw), feature="external link") from error
            raise FormatError(f"the object cannot be opened: {error}") from error

    def _dataset(self, handle: DatasetHandle, path: str, key: ObjectKey) -> DatasetRecord:
        """Read a dataset's record.

        Raises
        ------
        UnsupportedError
            If it has a null dataspace.
        FormatError
            If it cannot be read.
        """
        header = self._header(key)
        shape, max_shape = _extent(handle, header)
        messages = None if header is None else attribute_messages(header)
        if self.heaps is None or messages is None:
            attributes, scales = read_attributes(handle.id, path, self.skips), attached_scales(handle.id)
        else:
            attributes = recall_attributes(handle, messages, self.heaps, path, self.skips)
            scales = attached_scales(handle.id) if DIMENSION_LIST.encode() in messages else ()
        file = self.own[1] if key[0] == self.own[0] else decode_text(h5f.get_name(handle.id))
        keys = tuple(tuple(map(object_key, axis)) for axis in scales)
        return DatasetRecord(path, key, handle, file, shape, max_shape, attributes, keys, header)

    def _header(self, key: ObjectKey) -> ObjectHeader | None:
        if self.heaps is None or key[0] != self.own[0]:
            return None
        with suppress(FormatError):  # a header that we cannot make sense of is libhdf5's to judge
            return self.heaps.file.read(key[1])
        return None

    def _may_enter(self, key: ObjectKey, path: str, ancestors: tuple[ObjectKey, ...]) -> bool:
        if key in ancestors:
            self.skips.note(path, "a link back to a group that holds it")
            return False
        if len(ancestors) > MAX_DEPTH:
            raise UnsupportedError(f"groups lie more than {MAX_DEPTH} deep")
        if key in self.seen:
            self.repeated += 1
        self.seen.add(key)
        if self.repeated > MAX_REPEATED_GROUPS:
            self.skips.note(path, "one of very many further links to a group that is shown elsewhere")
            return False
        return True


def object_key(oid: Any) -> ObjectKey:  # noqa: ANN401  any h5py object id
    """The identity of an open object."""
    return _key(h5g.get_objinfo(oid))


def _key(info: h5g.GroupStat) -> ObjectKey:
    # Not H5Oget_info: to tell how large an object's metadata is, it walks through the whole chunk index.
    low, high = info.objno
    return int(info.fileno[0]), int(low) | int(high) << 32


type _Extent = tuple[tuple[int, ...], tuple[int | None, ...]]

_extents = Memory[_Extent]()


def _extent(handle: DatasetHandle, header: ObjectHeader | None) -> _Extent:
    """Lengths of the axes, and what they may grow to."""
    key = None if header is None else extent_key(header)
    return _extents.recall(key) or _extents.keep(key, _ask_extent(handle.id))


def _ask_extent(dsid: h5d.DatasetID) -> _Extent:
    with h5py_errors("the dataset cannot be read"):
        space = dsid.get_space()
        if space.get_simple_extent_type() == h5s.NULL:
            raise UnsupportedError("the dataset holds no values", feature="null dataspace")
        shape = space.get_simple_extent_dims()
        limits = space.get_simple_extent_dims(True)  # noqa: FBT003  h5py takes it by position
    return tuple(shape), tuple(None if limit == h5s.UNLIMITED else int(limit) for limit in limits)


def reopen_beside_file(record: DatasetRecord) -> DatasetRecord:
    """Open a dataset anew so that files of external storage are looked for beside the HDF5 file.

    libhdf5 by itself would look in the working directory. ``HDF5_EXTFILE_PREFIX`` takes precedence.
    """
    access = h5p.create(h5p.DATASET_ACCESS)
    access.set_efile_prefix(b"${ORIGIN}")
    with h5py_errors("the dataset cannot be opened"):
        file = h5i.get_file_id(record.id)
        # libhdf5 takes another prefix only while nobody has the dataset open.
        record.id.close()
        opened = h5d.open(file, record.path.encode(), access)
    return replace(record, handle=DatasetHandle(record.handle.group, record.handle.name, opened))


def _link_names(gid: h5g.GroupID) -> list[bytes]:
    """Names of the links: in order of creation where the group knows it, as NetCDF has them, else by name."""
    names: list[bytes] = []
    order = gid.get_create_plist().get_link_creation_order()
    index = h5.INDEX_CRT_ORDER if order & h5p.CRT_ORDER_TRACKED else h5.INDEX_NAME
    gid.links.iterate(names.append, idx_type=index)
    return names


def _soft_target(gid: h5g.GroupID, raw: bytes) -> str:
    return decode_text(cast("bytes", gid.links.get_val(raw)))


def _external_message(gid: h5g.GroupID, raw: bytes) -> str:
    file, target = cast("tuple[bytes, bytes]", gid.links.get_val(raw))
    return f"the file {decode_text(file)!r} or its object {decode_text(target)!r} cannot be opened"
