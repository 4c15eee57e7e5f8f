"""Files cut short, and files with a wrong byte: equal to what netCDF4-python reads, or refused."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest

import virtualzarr_refs as vzr
from scanners.netcdf3.header import read_header
from tests.scanners.netcdf3.comparing import assert_equal, read, read_with_netcdf4, scan
from virtualzarr_refs.sources import open_source

FORMATS = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA")


def small_file(path: Path, format_: str) -> bytes:
    with netCDF4.Dataset(path, "w", format=format_) as dataset:
        dataset.title = "t"
        dataset.createDimension("t", None)
        dataset.createDimension("x", 3)
        dataset.createVariable("a", "i4", ("x",))[:] = [1, 2, 3]
        dataset.createVariable("r", "i2", ("t", "x"))[:] = np.arange(6).reshape(2, 3) + 1
        dataset.createVariable("s", "f8", ("t",))[:] = [1.5, 2.5]
        dataset.variables["s"].units = np.float32(2)
        dataset.createVariable("c", "S1", ("x",))[:] = [b"x", b"y", b"z"]
    return path.read_bytes()


def truths(paths: Sequence[Path]) -> Iterator[Any]:
    """What netCDF4-python reads from each; None where it takes its process with it."""
    waiting = list(paths)
    command = [sys.executable, str(Path(__file__).with_name("netcdf4_worker.py"))]
    while waiting:
        text = "".join(f"{path}\n" for path in waiting)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)  # noqa: S603
        answers = done.stdout.splitlines()
        yield from map(json.loads, answers)
        if done.returncode:
            yield None
        waiting = waiting[len(answers) + 1 :] if done.returncode else []


# ── Cut short ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("format_", FORMATS)
def test_cut_at_every_length(tmp_path, format_):
    path = tmp_path / "cut.nc"
    content = small_file(path, format_)
    whole = read_with_netcdf4(path)
    header_size = read_header(open_source(str(path))).size
    for length in range(len(content)):
        path.write_bytes(content[:length])
        if length < header_size:
            # The NetCDF library takes the rest for zeros, and so many of these for empty files.
            with pytest.raises(vzr.FormatError):
                vzr.scan(path)
            continue
        group = scan(path)
        assert_equal(read(group), {name: whole[name] for name in group.arrays})
        skipped = [record.path for record in group.skipped]
        assert sorted([*group.arrays, *skipped]) == sorted(whole)
    # What is missing now is padding behind the last value, or that value.
    assert set(group.arrays) >= {"a", "r", "c"}


# ── Wrong bytes ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("format_", FORMATS)
def test_a_wrong_byte_anywhere(tmp_path, format_):
    content = small_file(tmp_path / "sound.nc", format_)
    random = np.random.default_rng(7)
    paths: list[Path] = []
    for position in range(len(content)):
        for byte in {content[position] ^ 1, content[position] ^ 0x80, int(random.integers(256))}:
            damaged = bytearray(content)
            damaged[position] = byte
            paths.append(tmp_path / f"{position}_{byte}.nc")
            paths[-1].write_bytes(damaged)
    groups = {path: group for path in paths if (group := scan_or_none(path)) is not None}
    assert len(groups) > len(paths) / 4
    # The library takes very long for some of the counts that are refused.
    for (path, group), truth in zip(groups.items(), truths(list(groups)), strict=True):
        if isinstance(truth, dict):
            assert_agree(group, truth, path.name)


def scan_or_none(path: Path) -> vzr.VirtualGroup | None:
    try:
        return scan(path)
    except vzr.FormatError as error:
        return None if str(path) in str(error) else pytest.fail(f"the error does not name the file: {error}")


def assert_agree(group: vzr.VirtualGroup, truth: dict[str, Any], context: str) -> None:
    """Assert that what is shown of a file is what the library reads."""
    for name, ours in read(group).items():
        if (theirs := find(truth, name)) is not None:
            dtype, shape, raw = theirs
            assert (ours.dtype.newbyteorder("="), list(ours.shape)) == (np.dtype(dtype), shape), context
            # The library gives numbers in native byte order.
            assert ours.tobytes() == base64.b64decode(raw), context
    assert len(group.arrays) + len(group.skipped) == len(truth), context


def find(truth: dict[str, Any], name: str) -> Any:
    """The variable of a name. Of one that is no UTF-8 netCDF4-python loses bytes; None if there is no other."""
    if name in truth:
        assert truth[name] is not None
        return truth[name]
    assert not name.isascii()
    return next((found for other, found in truth.items() if "\N{REPLACEMENT CHARACTER}" in other), None)
