"""The sidecar of a JSON set: files beside it that hold what is too large to be written out in it.

``year.json`` has the folder ``year.data``, with one file for each array. A file is named after its content, so that a
new version of a set never touches the files of the old one. The set refers to the folder by a template, so that
kerchunk's reader finds the files, and that ours does too where set and folder were moved together.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.references.urls import folder_of, name_of
from virtualzarr_refs.sources.location import join, local_path

TEMPLATE = "vzrefs_sidecar"
"""Name of the template that stands for the folder."""

PLACE = f"{{{{{TEMPLATE}}}}}"

_SUFFIX = re.compile(r"\.json(\.(gz|zst|zstd))?$")
_FILE_NAME = re.compile(r"[A-Za-z0-9_.-]{0,80}-[0-9a-f]{32}\.chunks")
_REFERENCE = re.compile(rb"\{\{vzrefs_sidecar\}\}/([A-Za-z0-9_.-]+)")


@dataclass(frozen=True, slots=True)
class SidecarFile:
    """A file of a sidecar.

    Parameters
    ----------
    name : str
        In the folder.
    chunks : tuple of bytes
        Its content, chunk after chunk.
    """

    name: str
    chunks: tuple[bytes, ...]


def sidecar_folder(url: str) -> str:
    """The folder, or its url, that belongs to the set at `url`."""
    return join(folder_of(url), _SUFFIX.sub("", name_of(url)) + ".data")


def template_url(folder: str) -> str:
    """The folder as a url that names its scheme, from which kerchunk's reader learns that it needs one."""
    return folder if local_path(folder) is None else f"file://{folder}"


def is_sidecar_file(name: str) -> bool:
    """Whether a file of a sidecar folder is one that this module named."""
    return _FILE_NAME.fullmatch(name) is not None


def files_named_in(document: bytes) -> set[str]:
    """Names of the files of its sidecar that a set, as it is on disk, refers to."""
    names = {match.decode() for match in _REFERENCE.findall(document)}
    return set(filter(is_sidecar_file, names))


def move_out(
    group: VirtualGroup, is_moved: Callable[[str, VirtualArray], bool], place: str = PLACE
) -> tuple[VirtualGroup, dict[str, SidecarFile]]:
    """Move inline chunks out of a group.

    Parameters
    ----------
    group : VirtualGroup
        To be written.
    is_moved : callable
        Takes the path of an array and the array, and says whether its inline chunks are moved.
    place : str
        What the set calls the folder.

    Returns
    -------
    group, files : VirtualGroup, dict of str to SidecarFile
        The group with references into the sidecar, which begin with `place`; and its files by name.
    """
    files: dict[str, SidecarFile] = {}

    def change(path: str, array: VirtualArray) -> VirtualArray:
        if not array.manifest.has_inline or not is_moved(path, array):
            return array
        file, manifest = _move_chunks(path, array.manifest.loaded(), place)
        files[file.name] = file
        return replace(array, manifest=manifest)

    return group.map_arrays(change), files


def point_into(group: VirtualGroup, folder: str, place: str = PLACE) -> VirtualGroup:
    """The group with urls of files in the set's own folder written as `place`, so that they move with it."""
    names = (url.removeprefix(f"{folder}/") for url in group.urls if url.startswith(f"{folder}/"))
    own = {f"{folder}/{name}": f"{place}/{name}" for name in names if is_sidecar_file(name)}
    if not own:
        return group
    return group.map_arrays(lambda _, array: replace(array, manifest=array.manifest.rename_urls(_Own(own))))


@dataclass(frozen=True, slots=True)
class _Own:
    """Renames the urls of a set's own files; a class, so that manifests which hold it can be pickled."""

    names: Mapping[str, str]

    def __call__(self, url: str) -> str:
        return self.names.get(url, url)


def _move_chunks(path: str, manifest: Manifest, place: str) -> tuple[SidecarFile, Manifest]:
    positions = sorted(manifest.inline)
    chunks = tuple(manifest.inline[position] for position in positions)
    file = SidecarFile(_file_name(path, chunks), chunks)
    ends = list(itertools.accumulate(map(len, chunks), initial=0))
    url_id, offset, length = np.array(manifest.url_id), np.array(manifest.offset), np.array(manifest.length, np.uint64)
    url_id.reshape(-1)[positions] = len(manifest.urls)
    offset.reshape(-1)[positions] = ends[:-1]
    length.reshape(-1)[positions] = np.diff(ends)
    urls = (*manifest.urls, f"{place}/{file.name}")
    return file, Manifest(urls, url_id, offset, length, manifest.variant, inner_chunks=manifest.inner_chunks)


def _file_name(path: str, chunks: tuple[bytes, ...]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for chunk in chunks:
        digest.update(chunk)
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', path)[-80:]}-{digest.hexdigest()}.chunks"
