"""The scanner for HDF5 and NetCDF4 files."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
from h5py import h5g

from scanners.hdf5.arrays import build_array
from scanners.hdf5.dimensions import NetCDFView, netcdf_view, visible_attributes
from scanners.hdf5.global_heap import GlobalHeaps
from scanners.hdf5.header import HeaderReader
from scanners.hdf5.opening import h5py_errors, open_hdf5, signature_offset
from scanners.hdf5.prefetching import prefetch, prefetch_indexes
from scanners.hdf5.records import DatasetRecord, GroupRecord
from scanners.hdf5.stored import SourceFacts
from scanners.hdf5.tree import Walk, object_key
from scanners.hdf5.truth import HDF5Truth
from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.metadata import GroupMetadata
from virtualzarr_refs.scanning import ScanOptions
from virtualzarr_refs.skip_log import SkipLog
from virtualzarr_refs.sources import Source, open_source
from virtualzarr_refs.sources.location import local_path


@dataclass(frozen=True, slots=True)
class HDF5Scanner:
    """Reads HDF5 files, and NetCDF4 files as NetCDF shows them."""

    name: str = "hdf5"

    def recognises(self, head: bytes, url: str) -> bool:  # noqa: ARG002  the url tells nothing more
        """Whether an HDF5 superblock lies in `head`."""
        return signature_offset(head) is not None

    def scan(self, source: Source, options: ScanOptions) -> VirtualGroup:
        """Read the layout of a whole file.

        Raises
        ------
        FormatError
            If libhdf5 cannot open the file or read its root group.
        VirtualZarrError
            Where `options.strict`, if any node cannot be shown.
        """
        skips = SkipLog(options.strict, options.doubts)
        with open_hdf5(source) as file:
            files = _Files.of(file, source)
            is_local = local_path(source.url) is not None
            prefetch(file, files.own.headers, source)
            root = Walk(skips, is_local, GlobalHeaps(files.own.headers)).root(file)
            prefetch_indexes(root, files.own, source)
            build = _Build(netcdf_view(root), files, skips, options)
            group = build.group(root)
        return replace(group, metadata=replace(group.metadata, skipped=tuple(skips.records)))

    @contextmanager
    def open_truth(self, source: Source) -> Generator[HDF5Truth]:
        """Open a file for comparison with what h5py reads.

        Raises
        ------
        FormatError
            If libhdf5 cannot open the file.
        """
        with open_hdf5(source) as file:
            yield HDF5Truth(file, local_path(source.url) is not None)


@dataclass(frozen=True, slots=True)
class _Files:
    """The file that is scanned, and those that its external links lead to."""

    own: SourceFacts
    known: dict[int, SourceFacts]

    @classmethod
    def of(cls, file: h5py.File, source: Source) -> _Files:
        with h5py_errors("the file's properties cannot be read"):
            number, _ = object_key(h5g.open(file.id, b"/"))
            facts = SourceFacts(source.url, source.identity().size, HeaderReader.of(file, source))
        return cls(facts, {number: facts})

    def facts(self, record: DatasetRecord) -> SourceFacts:
        number, _ = record.key
        if number not in self.known:
            with h5py_errors("the file's properties cannot be read"):
                self.known[number] = self._other(record)
        return self.known[number]

    def _other(self, record: DatasetRecord) -> SourceFacts:
        source = open_source(str(Path(record.file).absolute()), backend="local")
        holder = h5py.Dataset(record.id).file
        return SourceFacts(source.url, source.identity().size, HeaderReader.of(holder, source))


@dataclass(frozen=True, slots=True)
class _Build:
    """Turns records into groups and arrays."""

    view: NetCDFView
    files: _Files
    skips: SkipLog
    options: ScanOptions

    def group(self, record: GroupRecord) -> VirtualGroup:
        attributes, types = encode_attributes(visible_attributes(record.attributes))
        metadata = GroupMetadata(attributes, types, self.view.unlimited.get(record.path, ()))
        arrays = dict(filter(None, map(self._array, record.datasets.values())))
        groups: Mapping[str, Any] = {name: self.group(child) for name, child in record.groups.items()}
        return VirtualGroup(metadata, arrays, groups)

    def _array(self, record: DatasetRecord) -> tuple[str, VirtualArray] | None:
        view = self.view.datasets[record.path]
        if view.is_placeholder:
            self.skips.note(record.path, "a NetCDF dimension without a variable; arrays keep its name")
            return None
        with self.skips.node(record.path):
            shown = visible_attributes(record.attributes)
            facts = self.files.facts(record)
            return view.name, build_array(record, shown, view, facts, self.options)
        return None
