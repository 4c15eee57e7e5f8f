"""``vzrefs concat``, as a user runs it."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import fsspec
import netCDF4
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import virtualzarr_refs as vzr
from virtualzarr_refs.cli import main
from virtualzarr_refs.cli.patterns import expanded, natural_key

LENGTHS = (31, 29, 31)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, start, length, **changes):
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        time = file.createVariable("time", "i4", ("time",))
        time.units = "days since 2024-01-01"
        time[:] = start + np.arange(length)
        file.createVariable("x", "f4", ("x",))[:] = np.arange(3) + changes.get("shift", 0)
        values = np.arange(length * 3).reshape(length, 3) + start
        for name in ("t2m", "rain"):
            file.createVariable(name, "f4", ("time", "x"), chunksizes=(8, 3), zlib=True)[:] = values
            file[name].units = changes.get("units", "K")


@pytest.fixture
def months(folder):
    starts = itertools.accumulate(LENGTHS, initial=0)
    for number, (start, length) in enumerate(zip(starts, LENGTHS, strict=False), 8):
        write(f"{number}.nc", start, length)
    return ["8.nc", "9.nc", "10.nc"]


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


def joined(paths, **options):
    with xr.open_mfdataset(paths, combine="nested", concat_dim="time", data_vars="minimal", coords="minimal",
                           compat="override", join="exact", chunks=None, **options) as dataset:  # fmt: skip
        return dataset.load()


def opened(path):
    with xr.open_dataset(path, engine="virtualzarr_refs") as dataset:
        return dataset.load()


def test_a_pattern_becomes_one_set(months):
    result = run("concat", "*.nc", "--dim", "time", "-o", "all.json")
    assert result.exit_code == 0, result.output
    assert result.stdout == "all.json: 3 files, 4 arrays, 26 references\n"
    xr.testing.assert_identical(opened("all.json"), joined(months))


def test_sets_and_files_may_be_mixed(months):
    assert run("scan", "8.nc", "-o", "8.json").exit_code == 0
    assert run("concat", "8.json", *months[1:], "--dim", "time", "-o", "all.json").exit_code == 0
    xr.testing.assert_identical(opened("all.json"), joined(months))


def test_a_dry_run_tells_and_writes_nothing(months):
    result = run("concat", *months, "--dim", "time", "--dry-run")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "3 groups along 'time'"
    assert {line.split()[0] for line in result.stdout.splitlines()[2:]} == {"time", "x", "t2m", "rain"}
    assert not list(Path().glob("*.json"))


def test_what_is_refused_is_told_and_nothing_is_written(months):
    write("9.nc", 31, 29, units="degC", shift=1)
    for arguments, code in ((["--dry-run"], 1), (["-o", "all.json"], 1)):
        result = run("concat", *months, "--dim", "time", *arguments)
        assert result.exit_code == code
        text = result.stdout + result.stderr
        assert "t2m" in text
        assert "units differ: 'K' and 'degC'; convert one of them, or drop it" in text
        assert "indexes are not aligned" in text
    assert "nothing was written" in result.stderr
    assert not Path("all.json").exists()


def test_what_stands_in_the_way_can_be_dropped(months):
    write("9.nc", 31, 29, shift=1)
    result = run("concat", *months, "--dim", "time", "--drop", "x", "--only", "rain", "-o", "all.json")
    assert result.exit_code == 0, result.output
    xr.testing.assert_identical(opened("all.json"), joined(months, drop_variables=["x", "t2m"]))
    assert run("concat", *months, "--dim", "time", "--join", "override", "-o", "b.json").exit_code == 0
    missing = run("concat", *months, "--dim", "time", "--only", "snow", "-o", "c.json")
    assert missing.exit_code == 2
    assert "no file has the variable 'snow'" in missing.stderr


def test_files_can_be_sorted(months):
    unsorted = run("concat", *months[::-1], "--dim", "time", "-o", "all.json")
    assert unsorted.exit_code == 1
    assert "is out of order; pass sort=True" in unsorted.stderr
    assert run("concat", *months[::-1], "--dim", "time", "--sort", "-o", "all.json").exit_code == 0
    xr.testing.assert_identical(opened("all.json")["t2m"], joined(months)["t2m"])


def test_overlaps_are_settled_on_request(months):
    write("9.nc", 24, 36)
    assert "pass overlap='first'" in run("concat", *months, "--dim", "time", "-o", "all.json").stderr
    result = run("concat", *months, "--dim", "time", "--overlap", "last", "-o", "all.json")
    assert result.exit_code == 0, result.output
    found = opened("all.json")
    assert found.indexes["time"].is_unique
    np.testing.assert_array_equal(found["t2m"][24:60], opened("9.nc")["t2m"])


def test_a_new_dimension(months):
    for path in months:
        write(path, 0, 31)
    result = run("concat", *months, "--dim", "run", "--new", "-o", "runs.json")
    assert result.exit_code == 0, result.output
    assert opened("runs.json")["t2m"].shape == (3, 31, 3)


def test_processes_give_the_same(months):
    assert run("concat", *months, "--dim", "time", "-j", "2", "-o", "two.json").exit_code == 0
    assert run("concat", *months, "--dim", "time", "-o", "one.json").exit_code == 0
    assert vzr.open_refs("one.json").equals(vzr.open_refs("two.json"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["*.h5", "--dim", "time", "-o", "a.json"], "no file matches *.h5"),
        (["8.nc", "--dim", "time"], "-o OUT, or ask for a --dry-run"),
        (["8.nc", "--dim", "time", "-o", "there.json"], "--overwrite replaces it"),
    ],
)
def test_wrong_usage(months, arguments, message):
    assert run("concat", *months, "--dim", "time", "-o", "there.json").exit_code == 0
    result = run("concat", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_dimension_that_is_nowhere(months):
    result = run("concat", *months, "--dim", "tiem", "-o", "a.json")
    assert result.exit_code == 1
    assert "no variable has the dimension 'tiem'" in result.stderr


def test_patterns_of_urls(folder):
    filesystem = fsspec.filesystem("memory")
    for number in (10, 9, 1):
        filesystem.pipe_file(f"/patterns/{number}.nc", b"")
    assert expanded(["memory://patterns/*.nc"]) == [f"memory:///patterns/{n}.nc" for n in (1, 9, 10)]
    assert expanded(["http://host/a.nc?x=[1]"]) == ["http://host/a.nc?x=[1]"]
    odd = Path("odd[1].nc")
    odd.touch()
    assert expanded([os.fspath(odd)]) == [os.fspath(odd)]


def test_numbers_in_names_count_by_their_value():
    names = ["a10b2", "a9b10", "a9b9", "b", "a", "10", "9"]
    assert sorted(names, key=natural_key) == ["9", "10", "a", "a9b9", "a9b10", "a10b2", "b"]
