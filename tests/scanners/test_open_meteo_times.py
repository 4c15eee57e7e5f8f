"""Published files open with the times that their names and `meta.json` say."""

from __future__ import annotations

import json

import numpy as np
import omfiles
import pytest
import xarray as xr

import virtualzarr_refs as vzr
from scanners.open_meteo import time_axis, with_time
from tests.corpus import VARIABLE, corpus_files
from tests.open_meteo_files import truth, values, write

HOURLY = {"temporal_resolution_seconds": 3600, "chunk_time_length": 121}


def test_chunk_files():
    times = time_axis("s3://bucket/data/icon/temperature_2m/chunk_3000.om?x=1", HOURLY, 121)
    assert times[0] == np.datetime64("1970-01-01") + np.timedelta64(3000 * 121, "h")
    assert times.size == 121
    assert (np.diff(times) == np.timedelta64(1, "h")).all()
    assert time_axis("chunk_-2.om", HOURLY, 3)[0] == np.datetime64("1970-01-01") - np.timedelta64(242, "h")


@pytest.mark.parametrize(("year", "steps"), [(2023, 8760), (2024, 8784)])
def test_year_files(year, steps):
    times = time_axis(f"year_{year}.om", HOURLY, steps)
    assert times[0] == np.datetime64(f"{year}-01-01")
    assert times[-1] == np.datetime64(f"{year}-12-31T23")


@pytest.mark.parametrize("name", ["a.om", "chunk_1.nc", "chunk_.om", "year_2020", "master_0.om"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match=r"chunk_N\.om"):
        time_axis(name, HOURLY, 1)


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"temporal_resolution_seconds": 3600},
        {**HOURLY, "chunk_time_length": 0},
        {**HOURLY, "chunk_time_length": "1"},
    ],
)
def test_documents_that_lack_what_is_needed_are_refused(meta):
    with pytest.raises(vzr.FormatError, match=r"meta\.json lacks"):
        time_axis("chunk_1.om", meta, 1)


@pytest.mark.parametrize(("name", "length"), [("chunk_1.om", 122), ("year_2023.om", 8784)])
def test_files_with_too_many_steps_are_refused(name, length):
    with pytest.raises(vzr.FormatError, match="at most"):
        time_axis(name, HOURLY, length)


def test_a_document_by_its_place(tmp_path):
    (tmp_path / "meta.json").write_text(json.dumps(HOURLY))
    assert time_axis("chunk_0.om", tmp_path / "meta.json", 5).size == 5
    assert time_axis("chunk_0.om", str(tmp_path / "meta.json"), 5).size == 5
    for content in ("{", "[]"):
        (tmp_path / "meta.json").write_text(content)
        with pytest.raises(vzr.FormatError, match=r"meta\.json is not"):
            time_axis("chunk_0.om", tmp_path / "meta.json", 5)


def test_chunk_files_become_one_dataset(tmp_path):
    array = values("smooth", (3, 4, 300), "f4")
    parts = []
    for number, start in enumerate(range(0, 300, 121), 10):
        part = array[..., start : start + 121]
        path = write(tmp_path / f"chunk_{number}.om", part, (1, 4, part.shape[2]), compression="fpx_xor_2d")
        vzr.write_json(with_time(vzr.scan(path), HOURLY, path), tmp_path / f"{number}.json")
        parts.append(xr.open_dataset(tmp_path / f"{number}.json", engine="virtualzarr_refs", chunks={}))
    joined = xr.concat(parts, dim="time")
    assert joined["data"].dims == ("y", "x", "time")
    assert joined["data"].chunksizes["time"] == (121, 121, 58)
    assert (joined["data"].values == array).all()
    assert joined["time"].values[0] == np.datetime64("1970-01-01") + np.timedelta64(1210, "h")
    assert (np.diff(joined["time"].values) == np.timedelta64(1, "h")).all()


def test_a_year_opens_in_its_uneven_chunks(tmp_path):
    array = values("smooth", (2, 3, 8784), "f4")
    path = write(tmp_path / "year_2024.om", array, (1, 2, 504), compression="pfor_delta_2d_int16", scale_factor=20.0)
    year = with_time(vzr.scan(path), HOURLY, path).to_xarray(chunks={})
    assert year["data"].chunksizes["time"] == (504,) * 17 + (216,)
    assert (
        year["data"].sel(time="2024-12-31T23").values.tobytes()
        == truth(omfiles.OmFileReader.from_path(str(path)))[..., -1].tobytes()
    )


def test_names_that_are_there_are_kept(tmp_path):
    path = tmp_path / "chunk_1.om"
    writer = omfiles.OmFileWriter.at_path(str(path))
    names = writer.write_scalar("lat lon t", "coordinates")
    writer.close(writer.write_array(np.ones((2, 2, 5), "f4"), [2, 2, 5], children=[names], name="a"))
    group = with_time(vzr.scan(path), HOURLY, path)
    assert group["a"].metadata.dimension_names == ("lat", "lon", "time")
    with pytest.raises(ValueError, match="only once"):
        with_time(group, HOURLY, path)


@pytest.mark.parametrize(
    ("shape", "names"), [((5,), ("time",)), ((2, 5), ("location", "time")), ((1, 1, 1, 5), (None,) * 3 + ("time",))]
)
def test_names_by_rank(shape, names, tmp_path):
    path = write(tmp_path / "chunk_1.om", np.ones(shape, "f4"), shape)
    assert with_time(vzr.scan(path), HOURLY, path)["data"].metadata.dimension_names == names


@pytest.mark.skipif(not corpus_files("om"), reason=f"NO CORPUS: set {VARIABLE}; nothing was tested on real files")
def test_a_real_series():
    paths = [path for path in corpus_files("om") if path.name.startswith("psl_chunk")]
    meta = {"temporal_resolution_seconds": 86400, "chunk_time_length": 2016}
    parts = [with_time(vzr.scan(path), meta, path).to_xarray(chunks={}) for path in paths]
    joined = xr.concat(parts, dim="time")
    theirs = np.concatenate([truth(omfiles.OmFileReader.from_path(str(path))) for path in paths], axis=2)
    assert joined["psl"].values.tobytes() == theirs.tobytes()
    assert joined.sizes["time"] == 2016 + 2016 + 1447
    assert (np.diff(joined["time"].values) == np.timedelta64(1, "D")).all()
