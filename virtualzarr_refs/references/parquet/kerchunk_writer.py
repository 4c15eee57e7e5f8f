"""Writing kerchunk's sets in Parquet, which its own engine and fsspec's reference filesystem read.

See `virtualzarr_refs.references.parquet.kerchunk_reader` for the layout. Names of its files cannot be chosen, so a set
that is replaced is written beside the old one, and then takes its place.
"""

from __future__ import annotations

import errno
import json
from dataclasses import replace

import numpy as np

from virtualzarr_refs.chunk_manifest import ChunkManifest
from virtualzarr_refs.errors import NotRepresentableError
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualGroup, join_path
from virtualzarr_refs.manifest import MISSING, Manifest
from virtualzarr_refs.references.division import InlineChoice
from virtualzarr_refs.references.documents import ZMETADATA
from virtualzarr_refs.references.parquet.files import SetFiles
from virtualzarr_refs.references.parquet.index import is_own_file, partition_name
from virtualzarr_refs.references.parquet.lock import LOCK
from virtualzarr_refs.references.parquet.partition import encode
from virtualzarr_refs.references.sidecar import is_sidecar_file
from virtualzarr_refs.references.target import Target
from virtualzarr_refs.references.variants import materialise
from virtualzarr_refs.references.zarr_v2_documents import write_documents
from virtualzarr_refs.sources.location import join
from virtualzarr_refs.sources.redaction import redact


def write_kerchunk(
    group: VirtualGroup, target: Target, files: SetFiles, choice: InlineChoice, record_size: int
) -> None:
    """Write a set of kerchunk's; see `virtualzarr_refs.references.write_parquet`.

    Raises
    ------
    NotRepresentableError
        If it cannot carry the group; the message lists the arrays, the reasons and the way out.
    """
    if choice.materialise == "sidecar":
        raise NotRepresentableError(
            'kerchunk\'s sets in Parquet have no folder for data; materialise="inline" keeps the chunks in the tables'
        )
    if choice.materialise == "inline":
        group = materialise(group, files.storage_options)
    documents = write_documents(group)
    metadata = {
        join_path(path, name): document for path, of_node in documents.items() for name, document in of_node.items()
    }
    root = json.dumps({"metadata": metadata, "record_size": record_size}).encode()
    _refuse_to_remove(target, files)
    with target.replacing(files.folder) as folder:
        target.make_folder(folder)
        for path, array in group.walk_arrays():
            _write_array(target, folder, path, array.manifest, record_size)
        target.write(join(folder, ZMETADATA), root)


def _refuse_to_remove(target: Target, files: SetFiles) -> None:
    """Refuse to replace a folder with files that no set has written. Raises FileExistsError."""
    for name in target.files(files.folder):
        last = name.rpartition("/")[2]
        if not is_own_file(last) and not is_sidecar_file(last) and name not in (ZMETADATA, METADATA_KEY, LOCK):
            raise FileExistsError(
                errno.EEXIST, f"{name!r} is no file of the reference set; move it elsewhere", redact(files.folder)
            )


def _write_array(target: Target, folder: str, path: str, manifest: ChunkManifest, record_size: int) -> None:
    names = path.split("/")
    for depth in range(len(names)):
        target.make_folder(join(folder, "/".join(names[: depth + 1])))
    for start, block in manifest.blocks(record_size):
        target.write(join(folder, partition_name(path, start // record_size)), encode(_writable(block), None))


def _writable(block: Manifest) -> Manifest:
    """A block in which no reference has two zeros, by which kerchunk means the whole of a source."""
    empty = np.flatnonzero((block.url_id != MISSING) & (block.offset == 0) & (block.length == 0))
    if not empty.size:
        return block
    url_id = block.url_id.copy()
    url_id[empty] = MISSING
    return replace(block, url_id=url_id, inline={**block.inline, **dict.fromkeys(empty.tolist(), b"")})
