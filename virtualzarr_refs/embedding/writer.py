"""Writing a copy of a file that carries its indexes, and a Zarr hierarchy whose shards are links to it."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from virtualzarr_refs.documents import Documents
from virtualzarr_refs.embedding.plan import EmbeddingPlan, Shard, keep, room
from virtualzarr_refs.embedding.tail import nest
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup
from virtualzarr_refs.inner_chunks import checksum
from virtualzarr_refs.metadata import Skipped
from virtualzarr_refs.reader import ReadOptions, ValueReader
from virtualzarr_refs.scanning import absolute_url, scan
from virtualzarr_refs.sources.location import local_path

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_BLOCK = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Embedded:
    """What was written.

    Parameters
    ----------
    file : Path
        The copy.
    hierarchy : Path
        The folder of the Zarr hierarchy.
    shards : tuple of str
        Paths of arrays whose shard is the copy.
    copied : tuple of str
        Paths of arrays whose chunks are files of the hierarchy.
    left_out : tuple of Skipped
        What the hierarchy lacks.
    """

    file: Path
    hierarchy: Path
    shards: tuple[str, ...]
    copied: tuple[str, ...]
    left_out: tuple[Skipped, ...]


def embed(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    userblock: bool = False,
    variable: str | None = None,
    overwrite: bool = False,
) -> Embedded:
    """Copy an HDF5 file, with the indexes of its arrays in it, and put a Zarr hierarchy beside the copy.

    The copy is the same file to HDF5. To readers of Zarr v3 it is the shard of every array: the hierarchy, a folder
    that is named like the copy but for ``.zarr``, has links to it. Indexes are appended after what HDF5 takes for the
    end of the file. Opening the copy for writing cuts them off; readers then find a wrong checksum, and
    `virtualzarr_refs.check` says so.

    Parameters
    ----------
    source : str or path
        A local file.
    output : str or path
        The copy.
    userblock : bool
        Put the index into the user block before the file instead, where it outlives changes of other arrays; there is
        room for that of one array.
    variable : str, optional
        Path of that array.
    overwrite : bool
        Replace a copy that is there, and its hierarchy.

    Raises
    ------
    FileExistsError
        If a copy or a hierarchy is there and `overwrite` is false.
    UnsupportedError
        If the file is not a local HDF5 file, or several arrays need an index in the user block.
    NodeNotFoundError
        If `variable` is no array that can be a shard.
    FormatError, SourceError
        If the file cannot be scanned.
    """
    url = absolute_url(source)
    path = local_path(url)
    if path is None:
        raise UnsupportedError("only local files are copied", url=url)
    target = Path(output).resolve()
    folder = target.with_suffix(".zarr")
    _check_targets(Path(path), target, folder, overwrite=overwrite)
    group = scan(url)
    plan = EmbeddingPlan.of(group, url).only(variable) if userblock else EmbeddingPlan.of(group, url)
    with _replacing(target) as temporary:
        arrays = _copy(Path(path), temporary, plan, userblock=userblock)
        with closing(ValueReader(group, ReadOptions())) as reader, _replacing(folder) as hierarchy:
            hierarchy.mkdir()
            shown = {**arrays, **{name: _array(group, name) for name in plan.copied}}
            _write_hierarchy(keep(group, shown), hierarchy, reader, links=dict.fromkeys(arrays, target))
    return Embedded(target, folder, tuple(arrays), plan.copied, (*group.skipped, *plan.left_out))


def _check_targets(source: Path, target: Path, folder: Path, *, overwrite: bool) -> None:
    if target == folder:
        raise UnsupportedError("the hierarchy has the name of the copy with the ending .zarr; give the copy another")
    if target.exists() and target.samefile(source):
        raise FileExistsError(errno.EEXIST, "the copy cannot replace the file itself", str(target))
    for path in (target, folder):
        if path.exists() and not overwrite:
            raise FileExistsError(errno.EEXIST, "this is there already; --overwrite replaces it", str(path))


@contextmanager
def _replacing(path: Path) -> Generator[Path]:
    """A name beside a path, which takes its place in the end; if anything fails, nothing is left of it."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        if path.is_dir():
            shutil.rmtree(path)
        temporary.replace(path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        temporary.unlink(missing_ok=True)


def _copy(source: Path, target: Path, plan: EmbeddingPlan, *, userblock: bool) -> dict[str, VirtualArray]:
    """Write the copy; the arrays whose shard it is, as the hierarchy has them."""
    if not plan.shards:
        raise UnsupportedError("no array of the file can be a shard; write a reference set instead", url=str(source))
    with source.open("rb") as original, target.open("xb") as copy:
        base = _base(original)
        arrays = _write_userblock(original, copy, base, plan) if userblock else _write_tail(original, copy, plan)
        copy.flush()
        os.fsync(copy.fileno())
    return arrays


def _write_tail(original: BinaryIO, copy: BinaryIO, plan: EmbeddingPlan) -> dict[str, VirtualArray]:
    shards = {name: Shard.of(one, 0) for name, one in plan.shards.items()}
    tail = nest({name: shard.index for name, shard in shards.items()})
    shutil.copyfileobj(original, copy, _BLOCK)
    copy.write(tail.data)
    return {name: shard.array("end", tail.spare[name]) for name, shard in shards.items()}


def _write_userblock(original: BinaryIO, copy: BinaryIO, base: int, plan: EmbeddingPlan) -> dict[str, VirtualArray]:
    ((name, one),) = plan.shards.items()
    size = room(Shard.of(one, 0).index)
    shard = Shard.of(one, size - base)
    entries = shard.index.entries + shard.index.row * b"\xff"
    copy.write((entries + checksum(entries)).ljust(size, b"\0"))
    original.seek(base)
    shutil.copyfileobj(original, copy, _BLOCK)
    return {name: shard.array("start", 1)}


def _base(file: BinaryIO) -> int:
    """Where the superblock is, which a user block may stand before (HDF5 II.A: at 0, 512, 1024, 2048 and so on).

    Raises
    ------
    UnsupportedError
        If there is none.
    """
    end = file.seek(0, os.SEEK_END)
    place = 0
    while place < end:
        file.seek(place)
        if file.read(len(_SIGNATURE)) == _SIGNATURE:
            file.seek(0)
            return place
        place = max(512, 2 * place)
    raise UnsupportedError("only HDF5 and NetCDF4 files have room for an index", url=file.name)


def _array(group: VirtualGroup, path: str) -> VirtualArray:
    node = group[path]
    if not isinstance(node, VirtualArray):
        raise TypeError(path)
    return node


def _write_hierarchy(group: VirtualGroup, folder: Path, reader: ValueReader, links: Mapping[str, Path]) -> None:
    """Write the documents, links and chunks of a hierarchy."""
    documents = Documents(group)
    for path, node in group.walk():
        place = folder / path
        place.mkdir(parents=True, exist_ok=True)
        (place / METADATA_KEY).write_bytes(documents.find(f"{path}/{METADATA_KEY}".lstrip("/")) or b"")
        if not isinstance(node, VirtualArray):
            continue
        if path in links:
            _link(links[path], place / node.metadata.chunk_key_encoding.encode((0,) * len(node.shape)))
        else:
            _write_chunks(path, node, place, reader)


def _link(target: Path, key: Path) -> None:
    key.parent.mkdir(parents=True)
    key.symlink_to(os.path.relpath(target, key.parent))


def _write_chunks(path: str, array: VirtualArray, place: Path, reader: ValueReader) -> None:
    for key in array.chunk_keys():
        value = reader.resolve(f"{path}/{key}")
        if value is not None:
            (place / key).parent.mkdir(parents=True, exist_ok=True)
            (place / key).write_bytes(reader.read([value])[0])
