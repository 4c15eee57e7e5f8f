"""Scanning and reading files behind an object store's latency: time, requests and bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import ujson
import xarray as xr

import virtualzarr_refs as vzr
from benchmarks.latency_server import LatencyServer, serving
from benchmarks.rows import OURS, Race, Row
from benchmarks.scan import same_places

VIRTUALIZARR, KERCHUNK = "virtualizarr", "kerchunk"

_SCAN_TARGETS = {
    "datasets.h5": 5,
    "tiles.nc": 3,
    "frames.nc": 3,
    "index_btree1.h5": 4,
    "index_extensible.h5": 4,
}
_MOST_OF_FILE = {"tiles.nc": 0.03, "frames.nc": 0.03}
"""Part of the file that a scan may read at most."""

_MOST_REQUESTS = 20
"""For reading a thousand chunks that lie together."""


def rows(folder: Path) -> Iterable[Row]:
    """Scans, then reads of a whole variable and of a few chunks that lie far apart."""
    with serving(folder) as server, tempfile.TemporaryDirectory() as scratch:
        for name, target in _SCAN_TARGETS.items():
            most = _MOST_OF_FILE.get(name)
            megabytes = None if most is None else most * (folder / name).stat().st_size / 1e6
            subjects = _scans(f"{server.url}/{name}")
            race = Race("scan remote", name, subjects, same_places, {VIRTUALIZARR: target}, rounds=2)
            yield from _Counted(server, race, most_megabytes=megabytes).rows()
        for name in ("tiles.nc", "frames.nc"):
            references = _References.of(f"{server.url}/{name}", Path(scratch))
            yield from _Counted(server, references.race("read remote", name, (...,)), _MOST_REQUESTS).rows()
            series = (slice(None), 300, 700)
            yield from _Counted(server, references.race("read remote series", name, series)).rows()


@dataclass(frozen=True, slots=True)
class _Counted:
    """A race, run for the time first and then for what each subject asks the server for."""

    server: LatencyServer
    race: Race
    most_requests: int | None = None
    most_megabytes: float | None = None

    def rows(self) -> Iterable[Row]:
        row = self.race.run()
        yield row
        counts = {name: self._counts(self.race.subjects[name]) for name in (OURS, *row.peers)}
        requests = {name: float(count.requests) for name, count in counts.items()}
        megabytes = {name: count.bytes / 1e6 for name, count in counts.items()}
        suite, case = self.race.suite, self.race.case
        yield Row(suite, case, "requests", requests.pop(OURS), requests, limit=self.most_requests)
        as_many = {VIRTUALIZARR: 1.0} if VIRTUALIZARR in row.peers and row.suite == "scan remote" else {}
        yield Row(suite, case, "MB", megabytes.pop(OURS), megabytes, as_many, self.most_megabytes)

    def _counts(self, subject: Callable[[], Any]) -> Any:  # noqa: ANN401  a record of the server's
        self.server.forget()
        subject()
        return self.server.counts()


def _scans(url: str) -> Mapping[str, Callable[[], Any]]:
    peers = {VIRTUALIZARR: _virtualizarr, KERCHUNK: _kerchunk}
    subjects: dict[str, Callable[[], Any]] = {OURS: lambda: vzr.scan(url)}
    return subjects | {name: _bound(scan, url) for name, scan in peers.items() if find_spec(name) is not None}


def _bound(scan: Callable[[str], Any], url: str) -> Callable[[], Any]:
    return lambda: scan(url)


def _virtualizarr(url: str) -> Any:  # noqa: ANN401  an object of that library
    from obspec_utils.registry import ObjectStoreRegistry  # noqa: PLC0415  a peer that may not be there
    from obstore.store import HTTPStore  # noqa: PLC0415
    from virtualizarr.parsers import HDFParser  # noqa: PLC0415

    root = url.rpartition("/")[0]
    registry = ObjectStoreRegistry({root: HTTPStore(root, client_options={"allow_http": True})})
    return HDFParser()(url=url, registry=registry)


def _kerchunk(url: str) -> Any:  # noqa: ANN401  a document of that library
    from kerchunk.hdf import SingleHdf5ToZarr  # noqa: PLC0415  imported when it runs, as the other peer is

    return SingleHdf5ToZarr(url, inline_threshold=0).translate()


@dataclass(frozen=True, slots=True)
class _References:
    """What each reads with: references that are there already."""

    url: str
    ours: Path
    kerchunk: Path | None

    @classmethod
    def of(cls, url: str, scratch: Path) -> _References:
        name = url.rpartition("/")[2]
        ours, theirs = scratch / f"{name}.json", scratch / f"{name}.kerchunk.json"
        vzr.write_json(vzr.scan(url), ours)
        if find_spec(KERCHUNK) is None:
            return cls(url, ours, None)
        theirs.write_text(ujson.dumps(_kerchunk(url)))
        return cls(url, ours, theirs)

    def race(self, suite: str, case: str, where: tuple[Any, ...]) -> Race:
        """Open, and read a part of the variable; kerchunk's engine takes HDF5's fill value for CF's, so undecoded."""
        subjects: dict[str, Callable[[], Any]] = {OURS: lambda: _values(self.ours, "virtualzarr_refs", where)}
        if self.kerchunk is not None:
            subjects[KERCHUNK] = lambda: _values(self.kerchunk, KERCHUNK, where)
        if find_spec(VIRTUALIZARR) is not None:
            subjects[VIRTUALIZARR] = lambda: _virtualizarr_values(self.url, where)
        return Race(suite, case, subjects, np.array_equal, {KERCHUNK: 2}, rounds=2)


def _values(path: Path | None, engine: str, where: tuple[Any, ...]) -> Any:  # noqa: ANN401  of any type
    with xr.open_dataset(str(path), engine=engine, cache=False, mask_and_scale=False) as dataset:
        return dataset["t2m"][where].to_numpy()


def _virtualizarr_values(url: str, where: tuple[Any, ...]) -> Any:  # noqa: ANN401  of any type
    store = _virtualizarr(url)
    with xr.open_dataset(store, engine="zarr", consolidated=False, zarr_format=3, mask_and_scale=False) as dataset:
        return dataset["t2m"][where].to_numpy()
