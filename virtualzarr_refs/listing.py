"""What lies in a folder of a hierarchy, found without walking what lies beside it.

Store keys are taken for paths: groups and arrays are folders, and so are the numbers of a chunk key where
``/`` separates them. A folder is there if a key lies in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from virtualzarr_refs.chunk_grid import ChunkIndex
from virtualzarr_refs.hierarchy import METADATA_KEY, VirtualArray, VirtualGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder.

    Parameters
    ----------
    name : str
        Without the folder.
    is_folder : bool
        Whether keys lie in it; else it is the last part of a key.
    """

    name: str
    is_folder: bool


def entries(group: VirtualGroup, folder: str) -> Iterator[Entry]:
    """What lies in a folder; nothing if there is no such folder.

    Parameters
    ----------
    group : VirtualGroup
        The root of the hierarchy.
    folder : str
        Path of the folder without a slash at either end; empty for the root.

    Yields
    ------
    Entry
        The metadata first, then arrays, groups, or chunks in the order of the grid.
    """
    node, rest = _locate(group, folder)
    if isinstance(node, VirtualArray):
        yield from _array_entries(node, rest)
    elif node is not None:
        yield Entry(METADATA_KEY, is_folder=False)
        yield from (Entry(name, is_folder=True) for name in (*node.arrays, *node.groups))


def is_folder(group: VirtualGroup, path: str) -> bool:
    """Whether a key lies beneath the path."""
    return next(entries(group, path), None) is not None


def keys(group: VirtualGroup, prefix: str = "") -> Iterator[str]:
    """Every store key that starts with `prefix`, which may end anywhere in a name."""
    folder, _, stem = prefix.rpartition("/")
    for entry in entries(group, folder):
        if not entry.name.startswith(stem):
            continue
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_folder:
            yield from _keys_in(group, path)
        else:
            yield path


def _locate(group: VirtualGroup, path: str) -> tuple[VirtualGroup | VirtualArray | None, list[str]]:
    """The node on the way to `path` that is an array, or else its end, and the names that are left to go."""
    node: VirtualGroup | VirtualArray = group
    names = path.split("/") if path else []
    for depth, name in enumerate(names):
        if isinstance(node, VirtualArray):
            return node, names[depth:]
        child = node.arrays.get(name) or node.groups.get(name)
        if child is None:
            return None, names[depth:]
        node = child
    return node, []


def _array_entries(array: VirtualArray, rest: list[str]) -> Iterator[Entry]:
    if not rest:
        yield Entry(METADATA_KEY, is_folder=False)
    prefix = _index_of_folder(array, rest)
    if prefix is not None:
        last = len(prefix) == len(array.shape) - 1
        yield from (Entry(str(number), not last) for number in array.manifest.next_numbers(prefix).tolist())
    elif not rest and not array.manifest.is_missing:
        yield from _chunk_entries(array)


def _chunk_entries(array: VirtualArray) -> Iterator[Entry]:
    """The first parts of an array's chunk keys, where they are no numbers."""
    if array.shape and array.metadata.chunk_key_encoding.separator == "/":
        yield Entry("c", is_folder=True)
    else:
        yield from (Entry(key, is_folder=False) for key in array.chunk_keys())


def _index_of_folder(array: VirtualArray, rest: list[str]) -> ChunkIndex | None:
    """The numbers that all chunks in a folder share, or None if it is no folder of chunks."""
    encoding = array.metadata.chunk_key_encoding
    rank = len(rest) - (encoding.name == "default")
    if encoding.separator != "/" or not 0 <= rank < len(array.shape):
        return None
    prefix = encoding.decode("/".join(rest), rank) if rest else ()
    inside = prefix is not None and all(i < n for i, n in zip(prefix, array.manifest.grid_shape, strict=False))
    return prefix if inside else None


def _keys_in(group: VirtualGroup, folder: str) -> Iterator[str]:
    node, rest = _locate(group, folder)
    if isinstance(node, VirtualArray) and rest:
        path = folder.removesuffix("/".join(rest))
        yield from (f"{path}{key}" for key in node.chunk_keys(_index_of_folder(node, rest) or ()))
    elif isinstance(node, VirtualArray):
        yield f"{folder}/{METADATA_KEY}"
        yield from (f"{folder}/{key}" for key in node.chunk_keys())
    elif node is not None:
        yield from map(f"{folder}/".__add__, node.keys())
