"""The xarray engine ``virtualzarr_refs``: archive files and reference sets as datasets and trees.

What it shows is what xarray's netCDF4 and h5netcdf engines show of the same file. Values are read by zarr-python;
opening reads none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast, override

import xarray as xr
from xarray.backends import BackendEntrypoint, StoreBackendEntrypoint
from xarray.backends.common import datatree_from_dict_with_io_cleanup

from virtualzarr_refs.errors import NodeNotFoundError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.lazy_array import LazyArray
from virtualzarr_refs.manifest import VirtualChunk
from virtualzarr_refs.references import open_refs
from virtualzarr_refs.references.recognition import Openable, has_reference_name, is_reference_set
from virtualzarr_refs.scanning import MATERIALISE_LIMIT, TARGET_CHUNK_SIZE, scan
from virtualzarr_refs.shards.plain import without_shards
from virtualzarr_refs.sources import Backend, OnChange
from virtualzarr_refs.store import VirtualStore
from virtualzarr_refs.unlimited_dimensions import UnlimitedDimensions
from virtualzarr_refs.xarray_store import GroupStore


class VirtualZarrBackend(BackendEntrypoint):
    """Opens archive files, reference sets and hierarchies."""

    description = "Open HDF5, NetCDF4 and other archive files, and references to them, as Zarr"
    supports_groups = True

    @override
    def guess_can_open(self, filename_or_obj: Any) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Whether this is a hierarchy or a reference set; archive files are left to the engines that know them."""
        if isinstance(filename_or_obj, str | os.PathLike):
            return has_reference_name(os.fspath(cast("str", filename_or_obj)))
        return isinstance(filename_or_obj, VirtualGroup)

    @override
    def open_dataset(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        filename_or_obj: Openable,
        *,
        mask_and_scale: bool | Mapping[str, bool] = True,
        decode_times: Any = True,
        concat_characters: bool | Mapping[str, bool] = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | Mapping[str, bool] | None = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        backend: Backend = "auto",
        strict: bool = False,
        materialise_limit: int = MATERIALISE_LIMIT,
        target_chunk_size: int = TARGET_CHUNK_SIZE,
        allow: Iterable[str] | None = None,
        mask_fill_value: bool = False,
        on_change: OnChange = "error",
    ) -> xr.Dataset:
        """Open one group as a dataset.

        Parameters
        ----------
        filename_or_obj : str, path, VirtualGroup or mapping
            An archive file, which is scanned; a reference set, by its url or as a dict; or a hierarchy.
        mask_and_scale, decode_times, concat_characters, decode_coords, use_cftime, decode_timedelta
            As in `xarray.open_dataset`.
        drop_variables : str or iterable of str, optional
            Variables to leave out.
        group : str, optional
            Path of the group; the root by default.
        storage_options : mapping, optional
            Options for the filesystem of the file, of the reference set and of the sources.
        backend : {"auto", "local", "fsspec", "obstore"}
            What reads the bytes.
        strict, materialise_limit, target_chunk_size
            How a file is scanned; see `virtualzarr_refs.scan`.
        allow, mask_fill_value
            How a reference set is read; see `virtualzarr_refs.open_refs`.
        on_change : {"error", "warn", "ignore"}
            What to do about a source that is not what it was when it was scanned; see
            `virtualzarr_refs.store.VirtualStore`.

        Raises
        ------
        NodeNotFoundError
            If there is no such group.
        FormatError, ReferenceSetError, SourceError
            If the file or the reference set cannot be read.
        """
        how = OpenOptions(
            storage_options, backend, strict, materialise_limit, target_chunk_size, allow, mask_fill_value, on_change
        )
        return _Opened.of(filename_or_obj, how).dataset(
            _normal(group or ""),
            {
                "mask_and_scale": mask_and_scale,
                "decode_times": decode_times,
                "concat_characters": concat_characters,
                "decode_coords": decode_coords,
                "drop_variables": drop_variables,
                "use_cftime": use_cftime,
                "decode_timedelta": decode_timedelta,
            },
        )

    @override
    def open_groups_as_dict(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, filename_or_obj: Openable, *, group: str | None = None, **options: Any
    ) -> dict[str, xr.Dataset]:
        """Open a group and all groups beneath, as a dataset each, by path; see `open_dataset`."""
        names = [field.name for field in fields(OpenOptions) if field.name in options]
        opened = _Opened.of(filename_or_obj, OpenOptions(**{name: options.pop(name) for name in names}))
        top = _normal(group or "")
        return {
            "/" + path.removeprefix(top).strip("/"): opened.dataset(path, options)
            for path in opened.groups_beneath(top)
        }

    @override
    def open_datatree(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, filename_or_obj: Openable, **options: Any
    ) -> xr.DataTree:
        """Open a group and all groups beneath as a tree; see `open_dataset`."""
        return datatree_from_dict_with_io_cleanup(self.open_groups_as_dict(filename_or_obj, **options))


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """How something is opened; see `VirtualZarrBackend.open_dataset`."""

    storage_options: Mapping[str, Any] | None = None
    backend: Backend = "auto"
    strict: bool = False
    materialise_limit: int = MATERIALISE_LIMIT
    target_chunk_size: int = TARGET_CHUNK_SIZE
    allow: Iterable[str] | None = None
    mask_fill_value: bool = False
    on_change: OnChange = "error"

    @property
    def reading(self) -> dict[str, Any]:
        """How the sources are read."""
        return {"storage_options": self.storage_options, "backend": self.backend, "on_change": self.on_change}

    def hierarchy(self, openable: Openable) -> VirtualGroup:
        """Open whatever it is."""
        if isinstance(openable, VirtualGroup):
            return openable
        if isinstance(openable, Mapping) or is_reference_set(openable):
            return open_refs(
                openable,
                storage_options=self.storage_options,
                allow=self.allow,
                mask_fill_value=self.mask_fill_value,
            )
        return scan(
            openable,
            strict=self.strict,
            materialise_limit=self.materialise_limit,
            target_chunk_size=self.target_chunk_size,
            storage_options=self.storage_options,
            backend=self.backend,
        )


@dataclass(frozen=True, slots=True)
class _Opened:
    """A hierarchy that is ready to be read."""

    root: VirtualGroup
    store: VirtualStore
    reading: Mapping[str, Any]
    source: str | None
    unlimited: UnlimitedDimensions

    @classmethod
    def of(cls, openable: Openable, how: OpenOptions) -> _Opened:
        root = without_shards(how.hierarchy(openable))  # dask's chunks are best those of the file
        source = os.fspath(openable) if isinstance(openable, str | os.PathLike) else None
        return cls(root, root.to_store(**how.reading), how.reading, source, UnlimitedDimensions.of(root))

    def groups_beneath(self, top: str) -> Iterator[str]:
        """Paths of a group and of all groups beneath, each before what it holds."""
        for path, node in self._group(top).walk(top):
            if isinstance(node, VirtualGroup):
                yield path

    def dataset(self, path: str, decoding: Mapping[str, Any]) -> xr.Dataset:
        """One group, decoded as xarray decodes all formats."""
        store = self._data_store(path)
        mask_and_scale = store.maskable(decoding.get("mask_and_scale", True))
        return StoreBackendEntrypoint().open_dataset(store, **{**decoding, "mask_and_scale": mask_and_scale})

    def _data_store(self, path: str) -> GroupStore:
        group = self._group(path)
        arrays: dict[str, LazyArray] = {}
        for name, array in group.arrays.items():
            shape = self.unlimited.shape(path, array)
            arrays[name] = LazyArray(array, self.store, f"{path}/{name}".lstrip("/"), self.reading, shape)
            self.store.reader.expect(_coordinate_chunks(name, array))
        return GroupStore(group, arrays, self.store, self.source)

    def _group(self, path: str) -> VirtualGroup:
        node = self.root[path]
        if isinstance(node, VirtualArray):
            raise NodeNotFoundError("this is an array; give the path of its group instead", node=path)
        return node


MAX_COORDINATE_CHUNKS = 64
MAX_COORDINATE_CHUNK = 256 * 1024
"""Chunks of a coordinate variable, and bytes of each, for it to be fetched together with the others and kept."""


def _coordinate_chunks(name: str, array: VirtualArray) -> Iterator[VirtualChunk]:
    """The chunks of a small coordinate variable. xarray reads all of these when it opens a dataset, one by one."""
    if array.metadata.dimension_names != (name,) or array.manifest.size > MAX_COORDINATE_CHUNKS:
        return
    for number in range(array.manifest.size):
        chunk = array.manifest.chunk((number,))
        if isinstance(chunk, VirtualChunk) and chunk.byte_range.length <= MAX_COORDINATE_CHUNK:
            yield chunk


def _normal(path: str) -> str:
    return "/".join(filter(None, path.split("/")))
