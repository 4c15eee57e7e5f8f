"""Writing kerchunk reference sets in JSON, of specification version 1 and of either Zarr format."""

from __future__ import annotations

import errno
import gzip
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from virtualzarr_refs.chunk_grid import ChunkKeyEncoding
from virtualzarr_refs.errors import NotRepresentableError, ReferenceSetError, SourceError
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup
from virtualzarr_refs.metadata import encode_metadata
from virtualzarr_refs.references.chunk_values import Value, write_references
from virtualzarr_refs.references.division import INLINE_THRESHOLD, InlineChoice, check_options, divide
from virtualzarr_refs.references.json_reader import read_file
from virtualzarr_refs.references.secrets import require_no_secrets
from virtualzarr_refs.references.sidecar import (
    PLACE,
    TEMPLATE,
    SidecarFile,
    files_named_in,
    sidecar_folder,
    template_url,
)
from virtualzarr_refs.references.source_columns import write_columns
from virtualzarr_refs.references.target import Target, open_target
from virtualzarr_refs.references.zarr_v2_documents import write_documents
from virtualzarr_refs.scanning import absolute_url
from virtualzarr_refs.sources.redaction import redact

type References = dict[str, Value]


def write_json(
    group: VirtualGroup,
    path: str | os.PathLike[str],
    *,
    zarr_format: Literal[2, 3] = 3,
    overwrite: bool = False,
    inline_threshold: int = INLINE_THRESHOLD,
    materialise: Literal["inline", "sidecar"] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write a group as a kerchunk reference set.

    The set appears whole or not at all. Chunks that are too large to be written out in it go to files in a folder
    beside it, ``year.data`` for ``year.json``; the two belong together.

    Parameters
    ----------
    group : VirtualGroup
        What to write.
    path : str or path
        A local path or any fsspec url; compressed if it ends in ``.gz``, ``.zst`` or ``.zstd``.
    zarr_format : {3, 2}
        Zarr format of the keys and metadata. Format 2 is for old readers, and cannot carry every group.
    overwrite : bool
        Replace a set that is there.
    inline_threshold : int
        Bytes of inline chunks above which those of an array go to the folder beside the set.
    materialise : {"inline", "sidecar"}, optional
        What to do with an array whose chunks are encoded in different ways. By default its references get a fourth
        element, which this package reads and other readers refuse. Otherwise the chunks that are not encoded as most
        are get read and encoded so, and are kept in the set or in the folder beside it.
    storage_options : mapping, optional
        Options of the filesystem that is written to, and of the sources, where chunks have to be read. They are
        not written.

    Raises
    ------
    FileExistsError
        If there is a set already and `overwrite` is false.
    NotRepresentableError
        If the set cannot carry the group; the message lists the arrays, the reasons and the way out. Also if a url
        holds credentials.
    SourceError
        If chunks cannot be read, or the filesystem cannot be written to.
    """
    check_options(zarr_format, materialise)
    url = absolute_url(path)
    target = open_target(url, storage_options)
    if not overwrite and target.exists(url):
        raise FileExistsError(errno.EEXIST, "a reference set is there already; overwrite=True replaces it", redact(url))
    require_no_secrets((url, *group.urls, *group.sources))
    choice = InlineChoice(inline_threshold, materialise)
    whole, files = divide(group.loaded(), sidecar_folder(url), choice, PLACE, storage_options)
    data = _compressed(_encode(whole, url, zarr_format), url)
    replaced = _replaced_files(target, url, storage_options)
    _write(target, url, data, files)
    _remove_stale(target, sidecar_folder(url), replaced - _own_files(whole))


def _own_files(group: VirtualGroup) -> set[str]:
    return {url.removeprefix(f"{PLACE}/") for url in group.urls if url.startswith(PLACE)}


def _encode(group: VirtualGroup, url: str, zarr_format: int) -> bytes:
    import ujson  # noqa: PLC0415  only needed here

    templates = {TEMPLATE: template_url(sidecar_folder(url))} if _own_files(group) else {}
    _check_braces(group, templates)
    members = {"templates": templates, "sources": write_columns(group.sources)}
    present = {name: value for name, value in members.items() if value}
    document = {"version": 1, **present, "refs": _FORMATS[zarr_format](group)}
    return ujson.dumps(document, escape_forward_slashes=False).encode()


def _compressed(data: bytes, url: str) -> bytes:
    """The bytes of a set in the form that its name says."""
    if url.endswith(".gz"):
        return gzip.compress(data, mtime=0)
    if url.endswith((".zst", ".zstd")):
        from numcodecs import Zstd  # noqa: PLC0415  slow to import

        return bytes(Zstd().encode(data))
    return data


def _check_braces(group: VirtualGroup, templates: Mapping[str, str]) -> None:
    """Where a set has templates, readers take every pair of braces for the name of one."""
    taken = [*templates.values(), *group.sources, *(url for url in group.urls if not url.startswith(PLACE))]
    wrong = [url for url in taken if templates and "{{" in url]
    if wrong:
        raise NotRepresentableError(
            f"the url {redact(wrong[0])!r} holds '{{{{', which a set with a sidecar cannot say; raise inline_threshold"
        )


def _encode_v3(group: VirtualGroup) -> References:
    references: References = {}
    for path, node in group.walk():
        prefix = f"{path}/" if path else ""
        references[prefix + METADATA_KEY] = encode_metadata(node.metadata).decode()
        if isinstance(node, VirtualArray):
            references.update(write_references(node.manifest.loaded(), node.metadata.chunk_key_encoding, prefix))
    return references


def _encode_v2(group: VirtualGroup) -> References:
    references: References = {}
    for path, documents in write_documents(group).items():
        prefix, node = f"{path}/" if path else "", group[path]
        references.update((prefix + name, json.dumps(document)) for name, document in documents.items())
        if isinstance(node, VirtualArray):
            references.update(write_references(node.manifest.loaded(), ChunkKeyEncoding("v2", "."), prefix))
    return references


_FORMATS: Mapping[int, Callable[[VirtualGroup], References]] = {2: _encode_v2, 3: _encode_v3}


def _write(target: Target, url: str, data: bytes, files: Mapping[str, SidecarFile]) -> None:
    """Write the files and then the set; if any of it fails, leave what was there before and nothing else."""
    folder = sidecar_folder(url)
    new = [file for name, file in files.items() if name not in set(target.names(folder))] if files else []
    try:
        for file in new:
            target.write(f"{folder}/{file.name}", b"".join(file.chunks))
        target.write(url, data)
    except BaseException:
        with suppress(OSError, SourceError):
            for file in new:
                target.remove(f"{folder}/{file.name}")
        raise


def _replaced_files(target: Target, url: str, storage_options: Mapping[str, Any] | None) -> set[str]:
    """Files of its sidecar that only the set which is about to be replaced refers to."""
    if not target.names(sidecar_folder(url)) or not target.exists(url):
        return set()
    with suppress(ReferenceSetError, SourceError):  # it was no set, then, and has no sidecar
        return files_named_in(read_file(url, storage_options))
    return set()


def _remove_stale(target: Target, folder: str, names: set[str]) -> None:
    with suppress(OSError):  # the new set is in place and whole; what is left over does no harm
        for name in names:
            target.remove(f"{folder}/{name}")
