"""Reading through netCDF4-python, to check references with."""

from __future__ import annotations

import sys

import fsspec
import netCDF4
import numpy as np
import pytest

import virtualzarr_refs as vzr
from scanners.netcdf3 import NetCDF3Scanner
from tests.scanners.netcdf3.crafted import NC_INT, File, Var
from virtualzarr_refs.scanning import Verifier
from virtualzarr_refs.sources import open_source


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as dataset:
        dataset.createDimension("t", None)
        dataset.createDimension("x", 3)
        packed = dataset.createVariable("packed", "i2", ("t", "x"), fill_value=5)
        packed.scale_factor = 0.5
        packed.set_auto_maskandscale(False)
        packed[:] = np.arange(6).reshape(2, 3)
        dataset.createVariable("text", "S1", ("x",))[:] = [b"a", b"b", b"c"]
        dataset.variables["text"]._Encoding = "utf-8"
        dataset.createVariable("scalar", "f8", ())[...] = 1.5
    return path


@pytest.fixture(params=["local", "memory"])
def source(request, path):
    if request.param == "local":
        yield open_source(str(path))
        return
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/netcdf3/file.nc", path.read_bytes())
    yield open_source("memory://netcdf3/file.nc")
    memory.rm("/netcdf3", recursive=True)


def test_values_as_they_are_stored(source):
    scanner = NetCDF3Scanner()
    assert isinstance(scanner, Verifier)
    with scanner.open_truth(source) as truth:
        packed, text, scalar = (truth.find(name) for name in ("packed", "text", "scalar"))
        assert truth.find("other") is None
        assert truth.find("a/b") is None
        assert (packed.shape, packed.dtype.newbyteorder("="), text.dtype) == ((2, 3), np.dtype("i2"), np.dtype("S1"))
        assert packed.read((slice(1, 2), slice(0, 2))).tolist() == [[3, 4]]
        assert text.read((slice(None),)).tolist() == [b"a", b"b", b"c"]
        assert scalar.read(()).tolist() == 1.5


def test_an_unknown_number_of_records_cannot_be_compared(tmp_path):
    file = File(1, 0xFFFFFFFF, [(b"t", 0)], variables=[(b"v", Var(NC_INT, [0], 128))])
    path = tmp_path / "streaming.nc"
    path.write_bytes(file.header().ljust(136, b"\0"))
    assert vzr.scan(path).arrays["v"].shape == (2,)
    with (
        NetCDF3Scanner().open_truth(open_source(str(path))) as truth,
        pytest.raises(vzr.UnsupportedError, match="number of records open"),
    ):
        truth.find("v")


def test_a_file_that_the_library_cannot_open(tmp_path):
    path = tmp_path / "short.nc"
    path.write_bytes(b"CDF")
    with (
        pytest.raises(vzr.FormatError, match="cannot open the file"),
        NetCDF3Scanner().open_truth(open_source(str(path))),
    ):
        pass


def test_without_the_library(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "netCDF4", None)
    with (
        pytest.raises(vzr.UnsupportedError, match="pip install netCDF4"),
        NetCDF3Scanner().open_truth(open_source(str(path))),
    ):
        pass
