"""What the root of a set says about its files, in a member of its ``zarr.json``.

.. code-block:: json

    "virtualzarr_refs.partitions": {
        "must_understand": true,
        "version": 1,
        "set": "6f1c…",
        "partition_size": 65536,
        "generation": 0,
        "arrays": {"air": {"partitions": [[0, 12]], "sources": [[0, 3]], "count": 780000, "inline": false,
                           "generation": 0}}
    }

The member has to be understood, so that a reader that knows Zarr alone refuses the set: it would look for chunks, find
none, and show fill values. A generation is raised whenever files are written that differ from those of the same
name; the new ones get another name, so that the set is whole until its ``zarr.json`` is replaced, which is done last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, cast

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.partitioned_manifest import Runs

MEMBER = "virtualzarr_refs.partitions"
VERSION = 1
PARTITION_SIZE = 1 << 16
"""Chunks of a partition, unless asked for otherwise."""

MAX_PARTITION_SIZE = 1 << 26
"""Chunks of a partition; more is taken for an attack on memory."""

DATA = "data"
"""Folder of the set for inline chunks that are large."""

_OWN_FILE = re.compile(r"(refs\.\d+(\.\d+)?\.parq|sources(\.\d+)?\.parq)")


@dataclass(frozen=True, slots=True)
class ArrayIndex:
    """The files of one array.

    Parameters
    ----------
    partitions : tuple of (int, int)
        Numbers of those that there is a file for, as ranges; in others no chunk is there.
    sources : tuple of (int, int)
        Rows of the table of sources that they point to, as ranges.
    count : int
        Chunks that are there.
    has_inline : bool
        Whether any is inline.
    generation : int
        Of the names of the files.
    """

    partitions: Runs = ()
    sources: Runs = ()
    count: int = 0
    has_inline: bool = False
    generation: int = 0

    def to_json(self) -> dict[str, Any]:
        """As in ``zarr.json``."""
        return {
            "partitions": list(map(list, self.partitions)),
            "sources": list(map(list, self.sources)),
            "count": self.count,
            "inline": self.has_inline,
            "generation": self.generation,
        }

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        """Read a member of ``arrays``. Raises KeyError, TypeError or ValueError."""
        partitions, sources = (_runs(document[name]) for name in ("partitions", "sources"))
        count, generation = _natural(document["count"]), _natural(document["generation"])
        return cls(partitions, sources, count, bool(document["inline"]), generation)

    def names(self, path: str) -> Iterator[str]:
        """Names of the files in the folder of the set."""
        for start, stop in self.partitions:
            yield from (partition_name(path, number, self.generation) for number in range(start, stop))


@dataclass(frozen=True, slots=True)
class SetIndex:
    """The files of a set.

    Parameters
    ----------
    set_id : str
        What its partitions say they belong to.
    partition_size : int
        In chunks.
    generation : int
        Of the table of sources.
    arrays : mapping of str to ArrayIndex
        By path.
    """

    set_id: str
    partition_size: int
    generation: int
    arrays: Mapping[str, ArrayIndex]

    def to_json(self) -> dict[str, Any]:
        """The member of ``zarr.json``."""
        return {
            "must_understand": True,
            "version": VERSION,
            "set": self.set_id,
            "partition_size": self.partition_size,
            "generation": self.generation,
            "arrays": {path: array.to_json() for path, array in self.arrays.items()},
        }

    @classmethod
    def parse(cls, document: object) -> Self:
        """Read the member.

        Raises
        ------
        ReferenceSetError
            If it is malformed, or of a version that is not known.
        """
        try:
            return cls._parse(cast("dict[str, Any]", document))
        except ReferenceSetError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ReferenceSetError(f"the member {MEMBER!r} of zarr.json is malformed: {error!r}") from error

    @classmethod
    def _parse(cls, members: Mapping[str, Any]) -> Self:
        version, size = members["version"], _natural(members["partition_size"])
        if version != VERSION:
            raise ReferenceSetError(f"version {version!r} of sets in Parquet is not known; a newer release may read it")
        if not 1 <= size <= MAX_PARTITION_SIZE:
            raise ReferenceSetError(f"partitions of {size} chunks cannot be read")
        arrays = {path: ArrayIndex.parse(array) for path, array in members["arrays"].items()}
        return cls(str(members["set"]), size, _natural(members["generation"]), arrays)

    @property
    def last_generation(self) -> int:
        """The largest one in use."""
        return max([self.generation, *(array.generation for array in self.arrays.values())])

    def names(self) -> Iterator[str]:
        """Names of all files but ``zarr.json`` and those of `DATA`, in the folder of the set."""
        yield sources_name(self.generation)
        for path, array in self.arrays.items():
            yield from array.names(path)


def partition_name(path: str, number: int, generation: int = 0) -> str:
    """Name of a partition's file in the folder of the set."""
    return f"{path}/refs.{number}.{generation}.parq" if generation else f"{path}/refs.{number}.parq"


def sources_name(generation: int) -> str:
    """Name of the file with the table of sources."""
    return f"sources.{generation}.parq" if generation else "sources.parq"


def is_own_file(name: str) -> bool:
    """Whether a file of a folder is one that a set may have written, by its last name."""
    return _OWN_FILE.fullmatch(name) is not None


def _runs(value: object) -> Runs:
    pairs = [(_natural(start), _natural(stop)) for start, stop in cast("list[tuple[int, int]]", value)]
    if any(start >= stop for start, stop in pairs) or any(a[1] >= b[0] for a, b in pairwise(pairs)):
        raise ValueError(f"{pairs} are no ranges in ascending order")
    return tuple(pairs)


def _natural(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"{value!r} is no count")
    return value
