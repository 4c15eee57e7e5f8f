"""Scanning local files: how long, and in how much memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import virtualzarr_refs as vzr
from benchmarks.rows import OURS, Race, Row

INDEXES = ("index_btree1.h5", "index_btree2.h5", "index_fixed.h5", "index_extensible.h5")
_TARGETS: dict[str, dict[str, float]] = {
    **{name: {"virtualizarr": 50, "kerchunk": 150} for name in INDEXES},
    "datasets.h5": {"virtualizarr": 10, "kerchunk": 20},
    "tiles.nc": {},
}

type Places = dict[str, list[tuple[int, int]]]
"""Offset and length of every chunk, by the path of its array."""


def rows(folder: Path) -> Iterable[Row]:
    """Time for each file, then memory."""
    yield from (_race(folder / name, ratios).run() for name, ratios in _TARGETS.items())
    if Path("/proc/self/clear_refs").exists():
        yield from (_memory(folder / name) for name in INDEXES)


def _race(path: Path, ratios: dict[str, float]) -> Race:
    peers = {"virtualizarr": _virtualizarr, "kerchunk": _kerchunk}
    subjects: dict[str, Callable[[], Any]] = {OURS: lambda: vzr.scan(path)}
    subjects |= {name: _bound(scan, path) for name, scan in peers.items() if find_spec(name) is not None}
    return Race("scan", path.name, subjects, same_places, ratios, rounds=3)


def _bound(scan: Callable[[Path], Any], path: Path) -> Callable[[], Any]:
    return lambda: scan(path)


def _virtualizarr(path: Path) -> Any:  # noqa: ANN401  an object of that library
    from obspec_utils.registry import ObjectStoreRegistry  # noqa: PLC0415  a peer that may not be there
    from obstore.store import LocalStore  # noqa: PLC0415
    from virtualizarr.parsers import HDFParser  # noqa: PLC0415

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    return HDFParser()(url=f"file://{path.absolute()}", registry=registry)


def _kerchunk(path: Path) -> Any:  # noqa: ANN401  a document of that library
    from kerchunk.hdf import SingleHdf5ToZarr  # noqa: PLC0415  imported when it runs, as the other peer is

    return SingleHdf5ToZarr(str(path), inline_threshold=0).translate()


def same_places(ours: vzr.VirtualGroup, theirs: Any) -> bool:  # noqa: ANN401  of one of the peers
    """Whether a peer's references give every chunk the same place as ours."""
    expected = {path: _of_manifest(array) for path, array in ours.walk_arrays()}
    found = _of_document(theirs["refs"]) if isinstance(theirs, dict) else dict(_of_group(theirs._group))  # noqa: SLF001
    return found.keys() == expected.keys() and all(_agree(expected[path], sorted(found[path])) for path in found)


def _agree(ours: list[tuple[int, int]], theirs: list[tuple[int, int]]) -> bool:
    """Whether all chunks lie at the same offsets; virtualizarr cuts off the padding of an uncompressed last chunk."""
    return [offset for offset, _ in ours] == [offset for offset, _ in theirs] and all(
        a == b or (len(ours) == 1 and b < a) for (_, a), (_, b) in zip(ours, theirs, strict=True)
    )


def _of_manifest(array: vzr.VirtualArray) -> list[tuple[int, int]]:
    manifest, positions = array.manifest, array.manifest.virtual_positions()
    columns = (manifest.offset.reshape(-1)[positions], manifest.length.reshape(-1)[positions])
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def _of_document(references: dict[str, Any]) -> Places:
    found: Places = {}
    for key, value in references.items():
        path, _, name = key.rpartition("/")
        if name == ".zarray":
            found.setdefault(path, [])
        elif isinstance(value, list):
            found.setdefault(path, []).append((value[1], value[2]))
    return found


def _of_group(group: Any, prefix: str = "") -> Iterable[tuple[str, list[tuple[int, int]]]]:  # noqa: ANN401  a peer's
    for name, array in group.arrays.items():
        offsets, lengths = array.manifest._offsets.reshape(-1), array.manifest._lengths.reshape(-1)  # noqa: SLF001
        there = np.flatnonzero(lengths)
        yield prefix + name, list(zip(offsets[there].tolist(), lengths[there].tolist(), strict=True))
    for name, child in group.groups.items():
        yield from _of_group(child, f"{prefix}{name}/")


_CHILD = """
import sys
from pathlib import Path
import h5py, numpy, virtualzarr_refs as vzr
import scanners.hdf5.scanner

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6

Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
before = peak()
vzr.scan(sys.argv[1])
print(peak() - before)
"""


def _memory(path: Path) -> Row:
    """What a scan needs beyond the imported libraries, pages of the file included; see proc(5) for how it is read."""
    manifest = vzr.scan(path)["x"].manifest
    command = [sys.executable, "-c", _CHILD, str(path)]
    peak = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # noqa: S603  ours
    return Row("scan: peak memory", path.name, "MB", peak, limit=manifest.size * 20 / 1e6 + 100)
