"""``vzrefs convert``, and ``vzrefs scan`` into Parquet."""

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

from virtualzarr_refs import open_refs, scan
from virtualzarr_refs.cli import main


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)], prog_name="vzrefs")


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as h5:
        h5.create_dataset("v", data=np.arange(30, dtype="f4").reshape(5, 6), chunks=(2, 3), compression="gzip")
    return tmp_path / "a.h5"


def same(one, other):
    assert [*one.arrays] == [*other.arrays]
    return all(one[name].manifest.loaded().equals(other[name].manifest.loaded()) for name in one.arrays)


def test_a_set_through_every_form(file, tmp_path):
    path = tmp_path / "a.parq"
    assert run("scan", file, "-o", path).exit_code == 0
    names = [("b.json", "3"), ("c.json.gz", "2"), ("d.parquet", "2"), ("e.json.zst", "3"), ("f.parq", "3")]
    for name, zarr_format in names:
        result = run("convert", path, tmp_path / name, "--zarr-format", zarr_format)
        assert (result.exit_code, result.output) == (0, f"{tmp_path / name}: 1 array, 6 references of {path}\n")
        path = tmp_path / name
        assert same(open_refs(path), scan(file))
    assert (tmp_path / "c.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert (tmp_path / "d.parquet" / ".zmetadata").exists()


def test_a_set_that_is_there(file, tmp_path):
    for command in (["scan", file, "-o"], ["convert", tmp_path / "a.parq"]):
        assert run("scan", file, "-o", tmp_path / "a.parq", "--overwrite").exit_code == 0
        (tmp_path / "b.parq").mkdir(exist_ok=True)
        (tmp_path / "b.parq" / "precious").touch()
        assert run(*command, tmp_path / "b.parq", "--overwrite").exit_code == 1
    assert run("scan", file, "-o", tmp_path / "a.parq").exit_code == 2
    assert run("convert", tmp_path / "a.parq", tmp_path / "c.json").exit_code == 0
    result = run("convert", tmp_path / "a.parq", tmp_path / "c.json")
    assert result.exit_code == 1
    assert "overwrite" in result.output
    assert run("convert", tmp_path / "a.parq", tmp_path / "c.json", "--overwrite").exit_code == 0


def test_what_is_no_set(tmp_path):
    result = run("convert", tmp_path / "none.parq", tmp_path / "b.json")
    assert result.exit_code == 1
    assert "no reference set" in result.output
    assert run("convert", tmp_path / "none.parq").exit_code == 2
