from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

import virtualzarr_refs as vzr
from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.chunk_grid import RectilinearGrid, RegularGrid
from virtualzarr_refs.data_types import encode_data_type, encode_scalar
from virtualzarr_refs.lazy_array import LazyArray
from virtualzarr_refs.reader import ValueReader
from virtualzarr_refs.references.recognition import is_reference_set
from virtualzarr_refs.store import VirtualStore
from virtualzarr_refs.xarray_backend import VirtualZarrBackend

ENGINE = "virtualzarr_refs"


def array(
    values: Any,
    *dimensions: str | None,
    edges: tuple[Any, ...] | None = None,
    fill: Any = None,
    encoding: dict[str, Any] | None = None,
    **attributes: Any,
) -> vzr.VirtualArray:
    """An array of one inline chunk, or, with `edges`, of the chunks that it is cut into along the first axis."""
    values = np.asarray(values)
    fill = np.zeros((), values.dtype)[()] if fill is None else fill
    plain, types = encode_attributes(attributes, values.dtype)
    grid = RegularGrid(values.shape, tuple(max(1, n) for n in values.shape))
    pieces = [values]
    if edges is not None:
        grid = RectilinearGrid(values.shape, edges)
        pieces = np.split(values, np.cumsum(edges[0])[:-1])
    chunks = {i: piece.tobytes() for i, piece in enumerate(pieces)} if values.size else {}
    metadata = vzr.ArrayMetadata(
        data_type=encode_data_type(values.dtype),
        chunk_grid=grid,
        fill_value=encode_scalar(fill, values.dtype),
        codecs=({"name": "bytes", "configuration": {"endian": "little"}},),
        attributes=plain,
        dimension_names=dimensions or None,
        attribute_types=types,
        encoding=encoding or {},
    )
    return vzr.VirtualArray(metadata, vzr.Manifest.from_inline(grid.grid_shape, chunks))


def group(attributes: dict[str, Any] | None = None, *unlimited: str, **children: Any) -> vzr.VirtualGroup:
    plain, types = encode_attributes(attributes or {})
    arrays = {name: child for name, child in children.items() if isinstance(child, vzr.VirtualArray)}
    groups = {name: child for name, child in children.items() if isinstance(child, vzr.VirtualGroup)}
    return vzr.VirtualGroup(vzr.GroupMetadata(plain, types, unlimited), arrays, groups)


def opened(hierarchy: Any, **options: Any) -> xr.Dataset:
    return xr.open_dataset(hierarchy, engine=ENGINE, **options)


# ── Values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6, dtype="i2").reshape(2, 3),
        np.float32(1.5),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.array([1 + 2j, 3]),
        np.array([b"ab", b"c"]),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        np.array([b"\1\2\3"], dtype="V3"),
    ],
    ids=str,
)
def test_values_and_types(values):
    values = np.asarray(values)
    dataset = opened(group(v=array(values)))
    assert dataset.v.dtype == values.dtype
    assert dataset.v.encoding["dtype"] == values.dtype
    np.testing.assert_array_equal(dataset.v.values, values)


def test_rows_of_records_with_a_fill_value_stay_as_they_are():
    dtype = np.dtype([("a", "i4"), ("b", "f8")])
    values = np.array([(1, 2.0), (-9, -9.0)], dtype)
    dataset = opened(group(v=array(values, _FillValue=values[1]), w=array([1, 2], _FillValue=np.int64(2))))
    np.testing.assert_array_equal(dataset.v.values, values)
    np.testing.assert_array_equal(dataset.w.values, [1, np.nan])
    dataset = opened(group(v=array(values, _FillValue=values[1])), mask_and_scale=False)
    assert dataset.v.attrs["_FillValue"] == values[1]


def test_characters_become_strings():
    dataset = opened(group(v=array(np.array([[b"a", b"b"], [b"c", b""]]), "x", "n")))
    np.testing.assert_array_equal(dataset.v.values, [b"ab", b"c"])
    assert dataset.v.encoding["char_dim_name"] == "n"
    assert opened(group(v=array(np.array([[b"a"]]), "x", "n")), concat_characters=False).v.dims == ("x", "n")


def test_variable_strings(tmp_path):
    path = tmp_path / "file.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createVariable("v", str, ("x",))[:] = np.array(["a", "", "äß"], dtype=object)
        file["v"].note = ["one", "two"]
    expected = xr.open_dataset(path, engine="h5netcdf").load()
    dataset = opened(path)
    xr.testing.assert_identical(dataset, expected)
    assert dataset.v.dtype == expected.v.dtype
    assert dataset.v.encoding["dtype"] == expected.v.encoding["dtype"]


def test_type_of_the_packing_decides_the_type_of_the_values():
    packed = np.array([1, 2, -1], "i2")
    for kind in (np.float32, np.float64):
        dataset = opened(group(v=array(packed, scale_factor=kind(0.5), add_offset=kind(1), _FillValue=np.int16(-1))))
        assert dataset.v.dtype == kind
        np.testing.assert_array_equal(dataset.v.values, [1.5, 2, np.nan])
        encoding = dataset.v.encoding
        assert (encoding["scale_factor"], encoding["add_offset"], encoding["_FillValue"]) == (0.5, 1, -1)
        assert encoding["dtype"] == np.dtype("i2")


def test_fill_value_of_zarr_masks_nothing():
    dataset = opened(group(v=array([0, 1], fill=0)))
    assert dataset.v.dtype == np.dtype("i8")
    assert dataset.v.values.tolist() == [0, 1]


def test_times_are_decoded():
    hierarchy = group(time=array([0, 1], "time", units="days since 2020-02-28", calendar="standard"))
    assert opened(hierarchy).time.values.tolist() == [1582848000 * 10**9, 1582934400 * 10**9]
    assert opened(hierarchy).time.encoding["units"] == "days since 2020-02-28"
    assert opened(hierarchy, decode_times=False).time.attrs["calendar"] == "standard"


# ── Dimensions, attributes, encoding ─────────────────────────────────────────────────────────────────────────────────


def test_axes_without_names_are_the_array_s_own():
    dataset = opened(group(a=array(np.zeros((2, 3))), b=array(np.zeros((4, 3)), "x", None)))
    assert dataset.a.dims == ("a_dim_0", "a_dim_1")
    assert dataset.b.dims == ("x", "b_dim_1")


def test_hidden_attributes():
    attributes = {"CLASS": "IMAGE", "NAME": "n", "_NCProperties": "v", "title": "t"}
    dataset = opened(group(attributes, v=array([1], **attributes)))
    assert dataset.attrs == {"title": "t"}
    assert dataset.v.attrs == {"title": "t"}


def test_derived_attributes_are_not_the_file_s():
    encoding = {"enum": {"a": 1}, "derived_attributes": ["flag_values", "flag_meanings"]}
    dataset = opened(group(v=array([1], encoding=encoding, flag_values=np.array([1]), flag_meanings="a", units="1")))
    assert dataset.v.attrs == {"units": "1"}
    assert dict(dataset.v.encoding["dtype"].metadata) == {"enum": {"a": 1}, "enum_name": "v_t"}


def test_attributes_keep_their_types():
    attributes = {"f": np.float32(0.1), "i": np.array([1, 2], "i2"), "s": "text", "l": ["a", "b"]}
    dataset = opened(group(attributes, v=array([1], **attributes)))
    for shown in (dataset.attrs, dataset.v.attrs):
        assert type(shown["f"]) is np.float32
        assert shown["i"].dtype == np.dtype("i2")
        assert (shown["s"], shown["l"]) == ("text", ["a", "b"])


def test_chunks_are_dask_s():
    hierarchy = group(
        regular=array(np.arange(4), "a"), irregular=array(np.arange(90), "time", edges=((31, 28, 31),)), s=array(1.0)
    )
    dataset = opened(hierarchy, chunks={})
    assert dataset.irregular.chunks == ((31, 28, 31),)
    assert dataset.irregular.encoding["preferred_chunks"] == {"time": (31, 28, 31)}
    assert dataset.regular.encoding["chunksizes"] == (4,)
    assert dataset.s.encoding["contiguous"]
    np.testing.assert_array_equal(dataset.irregular.compute(), np.arange(90))
    assert opened(hierarchy, chunks="auto").irregular.data.sum().compute() == np.arange(90).sum()


def test_storage_in_the_words_of_netcdf(tmp_path):
    path = tmp_path / "file.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 6)
        options = {"zlib": True, "complevel": 3, "shuffle": True, "fletcher32": True, "chunksizes": (4,)}
        file.createVariable("v", "i4", ("x",), **options)[:] = np.arange(6)
        file.createVariable("c", "f4", ("x",))[:] = 1
    theirs, ours = xr.open_dataset(path, engine="netcdf4"), opened(path)
    for name in ("v", "c"):
        shared = ours[name].encoding.keys() & theirs[name].encoding.keys()
        assert {"dtype", "source", "original_shape", "chunksizes", "contiguous"} <= shared
        assert {k: ours[name].encoding[k] for k in shared - {"preferred_chunks"}} == {
            k: theirs[name].encoding[k] for k in shared - {"preferred_chunks"}
        }
    ours.to_netcdf(tmp_path / "copy.nc", engine="netcdf4")
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "copy.nc", engine="netcdf4"), theirs)


# ── Unlimited dimensions ─────────────────────────────────────────────────────────────────────────────────────────────


def short(values: Any, **options: Any) -> vzr.VirtualGroup:
    """A group along whose unlimited dimension one array is longer than the other."""
    return group(None, "time", long=array(np.arange(5), "time"), v=array(values, "time", "x", **options))


def test_unlimited_dimensions_are_told():
    assert opened(group(None, "time", v=array([1], "time"))).encoding["unlimited_dims"] == {"time"}


@pytest.mark.parametrize("length", [0, 1, 3, 5])
def test_short_variable_is_filled_up(length):
    values = np.arange(length * 2, dtype="i4").reshape(length, 2)
    expected = np.full((5, 2), -7)
    expected[:length] = values
    dataset = opened(short(values, fill=-7))
    assert dataset.v.encoding["original_shape"] == (5, 2)
    np.testing.assert_array_equal(dataset.v.values, expected)
    for where in (
        {"time": 4},
        {"time": -5},
        {"time": slice(1, None, 3)},
        {"time": slice(None, None, -1)},
        {"time": [4, 0, 0], "x": [1]},
        {"time": slice(4, 2)},
        {"time": xr.DataArray([0, 4], dims="p"), "x": xr.DataArray([1, 0], dims="p")},
    ):
        loaded = xr.DataArray(expected, dims=("time", "x"))
        np.testing.assert_array_equal(opened(short(values, fill=-7)).v.isel(where), loaded.isel(where))


@pytest.mark.parametrize("library", ["netcdf4", "h5netcdf"])
def test_short_variables_as_the_libraries_show_them(tmp_path, library):
    path = tmp_path / "file.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time")
        file.createVariable("long", "i4", ("time",))[:] = np.arange(5)
        file.createVariable("short", "i4", ("time",), fill_value=-7)[:2] = 1
        file.createVariable("never", "f4", ("time",))
        inner = file.createGroup("g")
        inner.createVariable("short", "f8", ("time",))[:3] = 1
    for options in ({}, {"group": "g"}):
        xr.testing.assert_identical(opened(path, **options), xr.open_dataset(path, engine=library, **options))
    xr.testing.assert_identical(xr.open_datatree(path, engine=ENGINE), xr.open_datatree(path, engine=library))


def test_fixed_dimension_of_an_unlimited_one_s_name_is_not_filled_up():
    inner = group(v=array(np.arange(2), "time", encoding={"fixed_axes": [0]}))
    hierarchy = group(None, "time", long=array(np.arange(5), "time"), g=inner)
    assert opened(hierarchy, group="g").v.shape == (2,)


def test_fixed_dimension_that_hides_an_unlimited_one_in_a_file(tmp_path):
    path = tmp_path / "file.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time")
        file.createVariable("long", "i4", ("time",))[:] = np.arange(5)
        inner = file.createGroup("g")
        inner.createDimension("time", 2)
        inner.createVariable("v", "f8", ("time",))[:] = 1
    for options in ({}, {"group": "g"}):
        xr.testing.assert_identical(opened(path, **options), xr.open_dataset(path, engine="netcdf4", **options))


def test_enumeration_as_the_library_shows_it(tmp_path):
    path, members = tmp_path / "file.nc", {"sunny": 0, "wet": 3}
    with netCDF4.Dataset(path, "w") as file:
        kind = file.createEnumType("u1", "weather_t", members)
        file.createDimension("x", 2)
        file.createVariable("v", kind, ("x",), fill_value=0)[:] = [3, 0]
    dataset = opened(path)
    xr.testing.assert_identical(dataset, xr.open_dataset(path, engine="netcdf4"))
    assert dataset.v.encoding["dtype"].metadata["enum"] == members
    dataset.to_netcdf(tmp_path / "copy.nc", engine="netcdf4")
    with netCDF4.Dataset(tmp_path / "copy.nc") as file:
        assert file["v"].datatype.enum_dict == members


# ── Groups ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def nested() -> vzr.VirtualGroup:
    leaf = group({"level": "two"}, w=array([3.0]))
    return group({"level": "zero"}, v=array([1]), g=group({"level": "one"}, h=leaf))


@pytest.mark.parametrize("path", ["g/h", "/g/h", "/g/h/"])
def test_group(path):
    assert opened(nested(), group=path).attrs == {"level": "two"}


@pytest.mark.parametrize("path", ["nowhere", "v", "g/nowhere"])
def test_group_that_is_not_there(path):
    with pytest.raises(vzr.NodeNotFoundError, match=path):
        opened(nested(), group=path)


def test_tree():
    tree = xr.open_datatree(nested(), engine=ENGINE)
    assert {node.path: node.attrs["level"] for node in tree.subtree} == {"/": "zero", "/g": "one", "/g/h": "two"}
    assert tree["g/h/w"].values.tolist() == [3]
    part = xr.open_datatree(nested(), engine=ENGINE, group="/g", chunks={})
    assert {node.path: node.attrs["level"] for node in part.subtree} == {"/": "one", "/h": "two"}
    assert list(xr.open_groups(nested(), engine=ENGINE)) == ["/", "/g", "/g/h"]


# ── Indexing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CUBE = np.arange(4 * 5 * 6).reshape(4, 5, 6)


@pytest.mark.parametrize(
    "where",
    [
        {"a": 1},
        {"a": -1, "b": slice(1, 4, 2)},
        {"b": slice(None, None, -2)},
        {"a": [3, 0], "c": [5, 5, 1]},
        {"a": np.array([True, False, True, False])},
        {"a": xr.DataArray([3, 0], dims="p"), "c": xr.DataArray([5, 1], dims="p")},
        {"a": xr.DataArray([[3, 0], [1, 1]], dims=("p", "q")), "b": 2, "c": xr.DataArray([-1, 1], dims="q")},
        {"a": [], "b": slice(2, 1)},
    ],
    ids=str,
)
def test_indexing(where):
    loaded = xr.DataArray(CUBE, dims=("a", "b", "c"))
    dataset = opened(group(v=array(CUBE, "a", "b", "c", edges=((1, 3), 5, 6))))
    np.testing.assert_array_equal(dataset.v.isel(where), loaded.isel(where))


def test_chain_of_selections():
    lazy = opened(group(v=array(CUBE, "a", "b", "c"))).v
    np.testing.assert_array_equal(lazy[1:][:, [4, 2]][..., ::-1][0], CUBE[1:][:, [4, 2]][..., ::-1][0])


def test_asynchronous_loading():
    dataset = opened(group(v=array(CUBE, "a", "b", "c")))
    loaded = asyncio.run(dataset.load_async())
    np.testing.assert_array_equal(loaded.v, CUBE)


# ── Laziness, threads, processes ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def archive(tmp_path) -> Path:
    path = tmp_path / "archive.nc"
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        for name in "ab":
            options = {"chunks": (3, 4), "compression": "gzip"}
            file.create_dataset(f"g/{name}", data=rng.random((10, 9), "f4"), **options)
    return path


def test_opening_reads_no_chunk(archive, monkeypatch):
    hierarchy = vzr.scan(archive)
    asked: list[str] = []

    def refuse(self, *_args, **_options):
        asked.append("a value")
        raise AssertionError

    for method in ("get", "get_sync", "_get_many", "get_ranges", "get_ranges_sync"):
        monkeypatch.setattr(VirtualStore, method, refuse)
    monkeypatch.setattr(ValueReader, "read_range", refuse)
    dataset = opened(hierarchy, group="g", chunks={})
    repr(dataset)
    assert not asked
    with pytest.raises(AssertionError):
        dataset.a.values  # noqa: B018  reads
    assert asked


def test_many_threads(archive):
    with h5py.File(archive) as file:
        expected = file["g/a"][...]
    dataset = opened(archive, group="g")
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda i: (i % 10, dataset.a.variable[i % 10].values), range(200)))
    assert all(np.array_equal(row, expected[i]) for i, row in results)


def test_pickling(archive):
    dataset = opened(archive, group="g")
    expected = dataset.load().copy(deep=True)
    for chunks in (None, {}):
        copy = pickle.loads(pickle.dumps(opened(archive, group="g", chunks=chunks)))
        xr.testing.assert_identical(copy, expected)


def test_pickled_array_takes_only_its_own_references():
    rng = np.random.default_rng(0)
    hierarchy = group(big=array(rng.integers(0, 255, 100_000, "u1")), small=array([1, 2]))
    store = hierarchy.to_store()
    lazy = LazyArray(hierarchy.arrays["small"], store, "small", {})
    data = pickle.dumps(lazy)
    assert len(data) < 10_000
    assert pickle.loads(data).read((slice(None),)).tolist() == [1, 2]


def test_pickled_array_keeps_its_padding():
    dataset = opened(short(np.zeros((2, 2), "i4"), fill=-7))
    assert pickle.loads(pickle.dumps(dataset)).v.values[:, 0].tolist() == [0, 0, -7, -7, -7]


def test_in_another_process(archive):
    dataset = opened(archive, group="g", chunks={"phony_dim_0": 3})
    total = dataset.a.sum().compute(scheduler="processes", num_workers=1)
    np.testing.assert_allclose(total, opened(archive, group="g").a.sum())


def test_reading_after_closing(archive):
    dataset = opened(archive, group="g")
    dataset.close()
    assert dataset.a.shape == dataset.a.values.shape


def test_settings_of_zarr_stay(archive):
    before = pickle.dumps(zarr.config.config)
    opened(archive, group="g").load()
    assert pickle.dumps(zarr.config.config) == before


def test_no_warning_about_types_that_zarr_has_no_stable_form_for(tmp_path):
    # In a process of its own, so that nothing has warned before and been forgotten.
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["s"] = np.array([b"abc"])
        file["r"] = np.array([(1, 2)], dtype=[("a", "i4"), ("b", "S3")])
        file["o"] = np.array([b"123"], dtype="V3")
        file.create_dataset("z", data=np.arange(5), compression="gzip", shuffle=True, fletcher32=True)
    code = f"import xarray as xr; print(*xr.open_dataset({str(path)!r}, engine={ENGINE!r}).load())"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own code
    assert done.stderr == ""
    assert set(done.stdout.split()) == {"s", "r", "o", "z"}


# ── What is opened ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_file_and_its_references_are_identical(archive, tmp_path):
    target = tmp_path / "refs.json"
    vzr.write_json(vzr.scan(archive), target)
    expected = xr.open_datatree(archive, engine=ENGINE)
    xr.testing.assert_identical(xr.open_datatree(target, engine=ENGINE), expected)
    xr.testing.assert_identical(xr.open_datatree(str(target), engine=ENGINE), expected)
    xr.testing.assert_identical(xr.open_datatree(json.loads(target.read_text()), engine=ENGINE), expected)


def test_reference_set_may_be_kept_from_pointing_elsewhere(archive, tmp_path):
    vzr.write_json(vzr.scan(archive), tmp_path / "refs.json")
    with pytest.raises(vzr.ReferenceSetError):
        opened(tmp_path / "refs.json", allow=["/elsewhere/"])


def test_to_xarray(archive):
    xr.testing.assert_identical(vzr.scan(archive).to_xarray(group="g"), opened(archive, group="g"))


def test_dropped_variables(archive):
    assert list(opened(archive, group="g", drop_variables=["a"])) == ["b"]
    assert list(xr.open_datatree(archive, engine=ENGINE, drop_variables="b")["g"].data_vars) == ["a"]


def test_strict(tmp_path):
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file.create_dataset("v", shape=(1,), dtype=h5py.vlen_dtype("i4"))
        file["w"] = 1
    with pytest.warns(vzr.SkippedNodeWarning):
        assert list(opened(tmp_path / "file.h5")) == ["w"]
    with pytest.raises(vzr.UnsupportedError):
        opened(tmp_path / "file.h5", strict=True)


def test_limits_of_the_scan(tmp_path):
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["v"] = ["text"] * 10
        file["w"] = np.zeros(100)
    with pytest.warns(vzr.SkippedNodeWarning):
        dataset = opened(tmp_path / "file.h5", materialise_limit=5, target_chunk_size=80)
    assert dataset.w.encoding["preferred_chunks"] == {"phony_dim_1": 10}


@pytest.mark.parametrize(
    ("name", "content", "is_set"),
    [
        ("a.json", "{}", True),
        ("a.parq/b", "", True),
        ("a.nc", "\x89HDF", False),
        ("a", ' \n{"version": 1}', True),
        ("a", "CDF", False),
        ("a/b", "", True),
    ],
)
def test_what_is_a_reference_set(tmp_path, name, content, is_set):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    assert is_reference_set(tmp_path / name.partition("/")[0]) is is_set


def test_what_is_a_reference_set_elsewhere():
    assert is_reference_set("s3://bucket/a.json")
    assert is_reference_set("https://host/a.parq/")
    assert not is_reference_set("https://host/a.nc")
    assert not is_reference_set("nowhere.nc")


def test_what_the_engine_offers_to_open(archive):
    backend = VirtualZarrBackend()
    assert backend.guess_can_open("refs.json")
    assert backend.guess_can_open(nested())
    for other in (archive, str(archive), "store.zarr", b"CDF", object()):
        assert not backend.guess_can_open(other)
    with warnings.catch_warnings(action="ignore"):  # h5netcdf warns of invented dimensions
        assert xr.backends.plugins.guess_engine(archive) != ENGINE
