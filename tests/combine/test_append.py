"""More files are put after a set that is there."""

from __future__ import annotations

from importlib import import_module

import pytest
import xarray as xr

import virtualzarr_refs as vzr
from tests.combine.files import Recipe, joined_by_us, joined_by_xarray, write_series
from virtualzarr_refs.errors import IncompatibleError, ReferenceSetError, SetLockedError, SourceError

appending = import_module("virtualzarr_refs.combine.append")  # the package has a function of that name

BASE = Recipe()
ODD = BASE.but(steps=3, dtype="i2", packing={"scale_factor": 0.5}, fill=7, storage={"zlib": True, "shuffle": True})
FORMATS = {"set.json": vzr.write_json, "set.parq": vzr.write_parquet}


@pytest.fixture(params=FORMATS)
def refs(request, tmp_path):
    return tmp_path / request.param


def write(group, refs):
    FORMATS[refs.name](group, refs)


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_equals_putting_all_together(refs, tmp_path):
    paths = write_series(tmp_path, BASE, BASE.but(steps=3), ODD, BASE)
    write(joined_by_us(paths[:2]), refs)
    vzr.append(refs, vzr.scan(paths[2]), "time")
    returned = vzr.append(refs, [vzr.scan(paths[3])], "time")
    expected = joined_by_xarray(paths)
    for found in (returned.to_xarray(), xr.open_dataset(refs, engine="virtualzarr_refs")):
        xr.testing.assert_equal(found.load(), expected)
        found.close()


def test_a_refusal_leaves_the_set(refs, tmp_path):
    paths = write_series(tmp_path, BASE, BASE.but(units="degC"))
    write(vzr.scan(paths[0]), refs)
    before = content(refs if refs.is_dir() else refs.parent)
    with pytest.raises(IncompatibleError, match=r"units differ.*1\.nc"):
        vzr.append(refs, vzr.scan(paths[1]), "time")
    with pytest.raises(IncompatibleError, match="pass overlap"):
        vzr.append(refs, vzr.scan(paths[0]), "time")
    assert content(refs if refs.is_dir() else refs.parent) == before


def test_a_second_writer_is_refused(refs, tmp_path, monkeypatch):
    paths = write_series(tmp_path, BASE, BASE, BASE)
    write(vzr.scan(paths[0]), refs)

    original = appending.concat

    def concat(groups, dim, **options):
        with pytest.raises(SetLockedError, match="is writing to this reference set"):
            vzr.append(refs, vzr.scan(paths[2]), "time")
        return original(groups, dim, **options)

    monkeypatch.setattr(appending, "concat", concat)
    vzr.append(refs, vzr.scan(paths[1]), "time")
    xr.testing.assert_equal(vzr.open_refs(refs).to_xarray().load(), joined_by_xarray(paths[:2]))
    assert not list(tmp_path.rglob("*.lock"))


def test_there_has_to_be_a_set(refs, tmp_path):
    (path,) = write_series(tmp_path, BASE)
    with pytest.raises((ReferenceSetError, SourceError)):
        vzr.append(refs, vzr.scan(path), "time")
