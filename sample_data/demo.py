"""Show on the sample files what virtualzarr-refs does, and check it: ``make demo``.

Files are scanned, their references are written to a temporary folder, opened again through xarray and zarr, and
compared with what the format's own library reads: the twelve months of a year as one dataset, then other files and
formats one by one. Exits with 1 if anything differs.
"""

import sys
import tempfile
import warnings
from calendar import month_name
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import dask.array  # noqa: F401  or its import would count in a time
import h5py
import numpy as np
import omfiles
import xarray as xr
import zarr
from rich import box
from rich.console import Console
from rich.table import Table

import virtualzarr_refs as vzr
from scanners.open_meteo import with_time

HERE = Path(__file__).parent
SERIES = ("open_meteo/temperature_2m/chunk_4058.om", "open_meteo/temperature_2m/chunk_4059.om")
META = HERE / "open_meteo" / "static" / "meta.json"
YEAR = tuple(f"{name.lower()}.nc" for name in month_name if name)
SAMPLES = ("february.nc", "classic.nc", "groups.h5")
ENGINES = {"classic.nc": "netcdf4"}  # h5netcdf, which reads the others directly, does not know NetCDF3


@dataclass(frozen=True, slots=True)
class Outcome:
    """One sample file: sizes in bytes, times in seconds, and what is compared and differs."""

    name: str
    file_size: int
    refs_size: int
    scan_time: float
    refs_read_time: float
    direct_read_time: float
    compared: int
    differences: tuple[str, ...]


def timed[T](action: Callable[[], T]) -> tuple[T, float]:
    """What `action` returns, and the seconds it took."""
    start = perf_counter()
    result = action()
    return result, perf_counter() - start


def scan_and_write(path: Path, refs: Path) -> vzr.VirtualGroup:
    """Scan a file and write its reference set; what cannot be shown as Zarr is told below, not warned about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vzr.SkippedNodeWarning)
        group = vzr.scan(path)
    vzr.write_json(group, refs)
    return group


def load(path: Path, engine: str) -> xr.Dataset:
    """Open a dataset and read all of its values."""
    with xr.open_dataset(path, engine=engine) as dataset:
        return dataset.load()


def show_year(folder: Path, console: Console) -> Outcome:
    """Put twelve months together, tell what differs between them, and compare with what xarray makes of the files."""
    paths, refs = [HERE / name for name in YEAR], folder / "year.json"

    def scan() -> vzr.Comparison:
        months = vzr.scan_many(paths)
        vzr.write_json(vzr.concat(months, "time"), refs)
        return vzr.compare(months, "time")

    def read_directly() -> xr.Dataset:
        options = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "exact"}
        with xr.open_mfdataset(paths, engine="h5netcdf", combine="nested", concat_dim="time", **options) as dataset:
            return dataset.load()

    console.rule(f"{YEAR[0]} to {YEAR[-1]}")
    comparison, scan_time = timed(scan)
    virtual, refs_read_time = timed(lambda: load(refs, "virtualzarr_refs"))
    direct, direct_read_time = timed(read_directly)
    console.print(f"{str(comparison).replace(str(HERE), 'sample_data')}\n\n{virtual!r}", markup=False)
    return Outcome(
        "twelve months",
        sum(path.stat().st_size for path in paths),
        refs.stat().st_size,
        scan_time,
        refs_read_time,
        direct_read_time,
        len(direct.variables),
        tuple(differing(virtual, direct)),
    )


def show_netcdf(path: Path, refs: Path, console: Console) -> Outcome:
    """Scan a NetCDF file and compare both the file and its reference set with what a NetCDF library reads."""
    _, scan_time = timed(lambda: scan_and_write(path, refs))
    virtual, refs_read_time = timed(lambda: load(refs, "virtualzarr_refs"))
    direct, direct_read_time = timed(lambda: load(path, ENGINES.get(path.name, "h5netcdf")))
    console.print(repr(virtual), markup=False)
    candidates = {"reference set": virtual, "file": load(path, "virtualzarr_refs")}
    differences = [f"{what}: {text}" for what, dataset in candidates.items() for text in differing(dataset, direct)]
    return Outcome(
        path.name,
        path.stat().st_size,
        refs.stat().st_size,
        scan_time,
        refs_read_time,
        direct_read_time,
        len(direct.variables),
        tuple(differences),
    )


def differing(virtual: xr.Dataset, direct: xr.Dataset) -> Iterator[str]:
    """What of a dataset is not exactly as in the one that was read directly."""
    if not virtual.identical(direct):
        yield "the datasets are not identical"
    for name, variable in direct.variables.items():
        if name not in virtual.variables:
            yield f"{name} is missing"
        elif virtual.variables[name].dtype != variable.dtype:
            yield f"{name} is {virtual.variables[name].dtype} instead of {variable.dtype}"


def show_groups(path: Path, refs: Path, console: Console) -> Outcome:
    """Scan an HDF5 file with nested groups and compare every dataset with what h5py reads."""
    _, scan_time = timed(lambda: scan_and_write(path, refs))
    group = vzr.open_refs(refs)
    virtual, refs_read_time = timed(lambda: dict(virtual_leaves(zarr.open_group(group.to_store(), mode="r"))))
    direct, direct_read_time = timed(lambda: read_directly(path))
    skipped = {record.path.strip("/"): record.reason for record in group.skipped}
    with xr.open_datatree(refs, engine="virtualzarr_refs") as tree:
        console.print(repr(tree), markup=False)
    for name, reason in skipped.items():
        console.print(f"left out: {name}: {reason}", markup=False)
    differences = [f"{name} differs" for name in direct if name not in skipped and not same(virtual, direct, name)]
    differences += [f"{name} is not in the file" for name in virtual.keys() - direct.keys()]
    return Outcome(
        path.name,
        path.stat().st_size,
        refs.stat().st_size,
        scan_time,
        refs_read_time,
        direct_read_time,
        len(direct.keys() - skipped.keys()),
        tuple(differences),
    )


def show_series(folder: Path, console: Console) -> Outcome:
    """Put consecutive Open-Meteo files together, whose names tell the times; compare with what omfiles reads."""
    paths, refs = [HERE / name for name in SERIES], folder / "series.json"

    def scan() -> None:
        vzr.write_json(vzr.concat([with_time(vzr.scan(path), META, path) for path in paths], "time"), refs)

    def read_directly() -> np.ndarray:
        return np.concatenate([omfiles.OmFileReader.from_path(str(path)).read_array(...) for path in paths], axis=-1)

    console.rule(", ".join(path.name for path in paths))
    _, scan_time = timed(scan)
    virtual, refs_read_time = timed(lambda: load(refs, "virtualzarr_refs"))
    direct, direct_read_time = timed(read_directly)
    console.print(repr(virtual), markup=False)
    name = paths[0].parent.name
    is_same = virtual[name].dtype == direct.dtype and np.array_equal(virtual[name], direct, equal_nan=True)
    sizes = (sum(path.stat().st_size for path in paths), refs.stat().st_size)
    differences = () if is_same else (f"{name} differs",)
    return Outcome("two .om files", *sizes, scan_time, refs_read_time, direct_read_time, 1, differences)


def virtual_leaves(group: zarr.Group) -> Iterator[tuple[str, np.ndarray]]:
    """Path and values of every array beneath a group."""
    for path, node in group.members(max_depth=None):
        if isinstance(node, zarr.Array):
            yield path, np.asarray(node[...])


def read_directly(path: Path) -> dict[str, Any]:
    """Path and values of every dataset of an HDF5 file, soft links followed."""
    with h5py.File(path) as file:
        return dict(direct_leaves(file))


def direct_leaves(group: h5py.Group, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Path and values of every dataset beneath a group; strings as `str`, a null dataspace as `h5py.Empty`."""
    for name, node in group.items():
        if isinstance(node, h5py.Group):
            yield from direct_leaves(node, f"{prefix}{name}/")
        elif h5py.check_string_dtype(node.dtype) and node.dtype == object:
            yield f"{prefix}{name}", node.asstr()[...]
        else:
            yield f"{prefix}{name}", node[()]


def same(virtual: dict[str, np.ndarray], direct: dict[str, Any], name: str) -> bool:
    """Whether both hold equal values of equal types, byte order aside, under a name."""
    if name not in virtual:
        return False
    ours, theirs = virtual[name], np.asarray(direct[name])
    if theirs.dtype == object:
        return ours.shape == theirs.shape and ours.tolist() == theirs.tolist()
    return ours.dtype.newbyteorder("=") == theirs.dtype.newbyteorder("=") and np.array_equal(ours, theirs)


def summary(outcomes: list[Outcome]) -> Table:
    """The table that ends the demo; narrow enough for a terminal of 80 columns."""
    table = Table(title="Read through references and read directly", box=box.SIMPLE)
    table.caption = "scan: until the references are written; compared: variables or datasets"
    table.add_column("file", no_wrap=True)
    for heading in ("size\nKiB", "refs\nKiB", "scan\nms", "via refs\nms", "direct\nms", "compared\n"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("identical", no_wrap=True)
    for outcome in outcomes:
        sizes = (outcome.file_size, outcome.refs_size)
        times = (outcome.scan_time, outcome.refs_read_time, outcome.direct_read_time)
        table.add_row(
            outcome.name,
            *(short(size / 1024) for size in sizes),
            *(short(time * 1000) for time in times),
            str(outcome.compared),
            "[red]NO" if outcome.differences else "[green]yes",
        )
    return table


def short(number: float) -> str:
    """A number of at most four digits or so."""
    return f"{number:.{0 if number >= 100 else 1}f}"


def main() -> int:
    """Run the demo; 1 if a comparison failed."""
    console = Console(highlight=False, soft_wrap=True)
    outcomes: list[Outcome] = []
    for engine in ("virtualzarr_refs", "h5netcdf", "netcdf4"):
        load(HERE / SAMPLES[0], engine)  # imports are not to count in the times
    load(HERE / SERIES[0], "virtualzarr_refs")  # nor is numba, which compiles the decoder once
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outcomes.append(show_year(folder, console))
        for path in (HERE / name for name in SAMPLES):
            console.rule(path.name)
            show = show_netcdf if path.suffix == ".nc" else show_groups
            outcomes.append(show(path, folder / f"{path.stem}.json", console))
        outcomes.append(show_series(folder, console))
    console.print(summary(outcomes))
    for outcome in outcomes:
        for difference in outcome.differences:
            console.print(f"{outcome.name}: {difference}", style="red", markup=False)
    return 1 if any(outcome.differences for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
