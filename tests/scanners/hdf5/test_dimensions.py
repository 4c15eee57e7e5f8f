from __future__ import annotations

from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import netCDF4
import numpy as np
import pytest

from scanners.hdf5.dimensions import HIDDEN_ATTRIBUTES, DatasetView, NetCDFView, netcdf_view, visible_attributes
from scanners.hdf5.records import DatasetRecord, GroupRecord
from scanners.hdf5.tree import Walk
from virtualzarr_refs.skip_log import SkipLog

PLACEHOLDER = "This is a netCDF dimension but not a netCDF variable.         3"


class Tree:
    """Builds records; the key of a dataset is its path, unless another dataset's is given."""

    def __init__(self) -> None:
        self.root = GroupRecord("", {})

    def group(self, path: str) -> GroupRecord:
        group = self.root
        for name in filter(None, path.split("/")):
            child = f"{group.path}/{name}" if group.path else name
            group = group.groups.setdefault(name, GroupRecord(child, {}))
        return group

    def add(
        self,
        path: str,
        shape: tuple[int, ...],
        *scales: str | tuple[str, ...] | None,
        key: str | None = None,
        unlimited: bool = False,
        **attributes: Any,
    ) -> Tree:
        parent, _, name = path.rpartition("/")
        axes = [(scale,) if isinstance(scale, str) else scale or () for scale in scales]
        keys = tuple(tuple(map(self.key, axis)) for axis in axes)
        max_shape = (None, *shape[1:]) if unlimited else shape
        nothing: Any = None
        self.group(parent).datasets[name] = DatasetRecord(
            path, self.key(key or path), nothing, "file.nc", shape, max_shape, attributes, keys
        )
        return self

    def scale(self, path: str, shape: tuple[int, ...], NAME: str | bytes = "x", **attributes: Any) -> Tree:  # noqa: N803
        return self.add(path, shape, CLASS="DIMENSION_SCALE", NAME=NAME, **attributes)

    @staticmethod
    def key(path: str) -> tuple[int, int]:
        return 0, hash(path)

    def view(self) -> NetCDFView:
        return netcdf_view(self.root)

    def dimensions(self, path: str) -> tuple[str, ...]:
        return self.view().datasets[path].dimensions


# ── Dimension scales ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_scale_is_its_own_dimension():
    assert Tree().scale("x", (3,)).view() == NetCDFView({"x": DatasetView("x", ("x",))}, {"": ()})


def test_scalars_have_no_dimensions():
    assert Tree().add("s", ()).dimensions("s") == ()


def test_scalar_that_claims_to_be_a_scale_is_none():
    view = Tree().scale("s", (), NAME=PLACEHOLDER).view()
    assert view.datasets["s"] == DatasetView("s", ())


def test_attached_scales_name_the_axes():
    tree = Tree().scale("y", (2,)).scale("x", (3,)).add("v", (2, 3), "y", "x")
    assert tree.dimensions("v") == ("y", "x")


def test_one_scale_may_be_attached_to_two_axes():
    assert Tree().scale("x", (3,)).add("v", (3, 3), "x", "x").dimensions("v") == ("x", "x")


def test_last_of_several_scales_counts():
    tree = Tree().scale("a", (3,)).scale("b", (3,)).add("v", (3,), ("a", "b"))
    assert tree.dimensions("v") == ("b",)


def test_dimension_without_variable_is_a_placeholder():
    tree = Tree().scale("x", (3,), NAME=PLACEHOLDER).add("v", (3,), "x")
    assert tree.view().datasets == {"x": DatasetView("x", ("x",), is_placeholder=True), "v": DatasetView("v", ("x",))}


def test_names_given_as_bytes():
    tree = Tree().add("x", (3,), CLASS=b"DIMENSION_SCALE", NAME=PLACEHOLDER.encode())
    assert tree.view().datasets["x"].is_placeholder


def test_dimensions_are_inherited():
    tree = Tree().scale("x", (3,)).add("g/h/v", (3,), "x")
    assert tree.dimensions("g/h/v") == ("x",)


def test_scale_in_a_group_elsewhere_lends_its_name():
    tree = Tree().scale("geo/x", (3,)).add("data/v", (3, 2), "geo/x")
    assert tree.dimensions("data/v") == ("x", "phony_dim_1")


def test_scale_elsewhere_with_an_ambiguous_name_lends_nothing():
    tree = Tree().scale("a/x", (3,)).scale("b/x", (4,)).add("c/v", (3, 4), "a/x", "b/x")
    assert tree.dimensions("c/v") == ("phony_dim_2", "phony_dim_3")


def test_shadowed_dimension_is_not_used():
    tree = Tree().scale("x", (4,)).scale("g/x", (3,)).add("g/v", (4, 3), "x")
    assert tree.dimensions("g/v") == ("phony_dim_2", "x")


def test_scale_that_is_not_in_the_tree():
    assert Tree().add("v", (3,), "skipped").dimensions("v") == ("phony_dim_0",)


def test_scale_of_another_length_is_not_used():
    tree = Tree().scale("x", (4,)).add("v", (3,), "x")
    assert tree.dimensions("v") == ("phony_dim_1",)


def test_two_dimensional_scale_without_numbers():
    assert Tree().scale("t", (5, 8)).dimensions("t") == ("t", "phony_dim_1")


def test_first_link_to_a_scale_counts():
    tree = Tree().scale("b", (3,)).scale("a", (3,), key="b").add("v", (3,), "b")
    assert [tree.dimensions(name) for name in "bav"] == [("b",), ("a",), ("b",)]


# ── Dimensions by number ─────────────────────────────────────────────────────────────────────────────────────────────


def test_coordinate_variable_of_two_dimensions():
    tree = Tree().scale("n", (8,), NAME=PLACEHOLDER, _Netcdf4Dimid=np.int32(0))
    tree.scale("t", (5, 8), _Netcdf4Dimid=np.int32(1), _Netcdf4Coordinates=np.array([1, 0], "i4"))
    assert tree.dimensions("t") == ("t", "n")


def test_numbers_of_inherited_dimensions():
    tree = Tree().scale("n", (8,), NAME=PLACEHOLDER, _Netcdf4Dimid=np.int32(7))
    tree.scale("g/t", (5, 8), _Netcdf4Dimid=np.int32(8), _Netcdf4Coordinates=np.array([8, 7], "i4"))
    assert tree.dimensions("g/t") == ("t", "n")


def test_dimensions_without_numbers_are_counted():
    tree = Tree().scale("n", (8,)).scale("t", (5, 8), _Netcdf4Coordinates=np.array([1, 0], "i4"))
    assert tree.dimensions("t") == ("t", "n")


def test_last_link_has_the_number():
    tree = Tree()
    for name in ("time", "time_hard"):
        number = np.array([0], "i4")
        tree.scale(name, (3,), key="time", _Netcdf4Dimid=np.int32(0), _Netcdf4Coordinates=number)
    tree.add("v", (3,), "time")
    assert {tree.dimensions(name) for name in ("time", "time_hard", "v")} == {("time_hard",)}


@pytest.mark.parametrize("numbers", [np.array([9]), np.array([0, 1]), np.array([], "i4"), "text", np.array([0.5])])
def test_numbers_that_make_no_sense(numbers):
    tree = Tree().scale("x", (3,), _Netcdf4Dimid=np.int32(4), _Netcdf4Coordinates=numbers)
    tree.add("v", (3,), _Netcdf4Coordinates=numbers)
    assert tree.dimensions("x") == ("x",)
    assert tree.dimensions("v") == ("x",)


# ── Unlimited dimensions ─────────────────────────────────────────────────────────────────────────────────────────────


def test_unlimited_dimensions_by_group():
    tree = Tree().scale("t", (3,), unlimited=True).scale("x", (2,)).scale("g/u", (1,), unlimited=True)
    assert tree.view().unlimited == {"": ("t",), "g": ("u",)}


@pytest.mark.parametrize("length", [0, 2, 3, 5])
def test_variables_along_an_unlimited_dimension_may_differ_in_length(length):
    tree = Tree().scale("t", (3,), unlimited=True).add("v", (length, 3), "t", None)
    assert tree.dimensions("v") == ("t", "phony_dim_1")


def test_unlimited_dimension_is_as_long_as_its_longest_variable():
    tree = Tree().scale("t", (3,), unlimited=True).add("g/v", (7,), "t").add("w", (7,))
    assert tree.dimensions("w") == ("t",)


def test_dimension_of_fixed_length_that_hides_an_unlimited_one():
    tree = Tree().scale("t", (3,), unlimited=True).scale("g/t", (2,)).add("g/h/v", (5, 2), None, "g/t")
    views = tree.view().datasets
    assert views["g/h/v"] == DatasetView("v", ("phony_dim_2", "t"), fixed_axes=(1,))
    assert views["g/t"].fixed_axes == (0,)
    assert views["t"].fixed_axes == ()


# ── Phony dimensions ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_phony_dimensions_are_shared_by_length():
    tree = Tree().add("a", (3, 3)).add("b", (3,)).add("c", (2, 3, 3))
    assert tree.dimensions("a") == ("phony_dim_0", "phony_dim_1")
    assert tree.dimensions("b") == ("phony_dim_0",)
    assert tree.dimensions("c") == ("phony_dim_2", "phony_dim_0", "phony_dim_1")


def test_phony_dimensions_are_not_shared_between_groups():
    tree = Tree().add("a", (3,)).add("g/h/b", (3,)).add("g/c", (3,))
    assert [tree.dimensions(path) for path in ("a", "g/c", "g/h/b")] == [
        ("phony_dim_0",),
        ("phony_dim_1",),
        ("phony_dim_2",),
    ]


def test_axis_without_scale_takes_a_declared_dimension_of_its_length():
    tree = Tree().scale("x", (3,)).add("v", (3, 3, 2))
    assert tree.dimensions("v") == ("x", "phony_dim_1", "phony_dim_2")


def test_axis_without_scale_never_repeats_a_dimension_of_its_dataset():
    tree = Tree().scale("x", (3,)).add("v", (3, 3), None, "x")
    assert tree.dimensions("v") == ("phony_dim_1", "x")


def test_phony_dimension_avoids_names_that_are_taken():
    tree = Tree().scale("phony_dim_1", (4,)).add("v", (3, 2))
    assert tree.dimensions("v") == ("phony_dim_2", "phony_dim_3")


def test_many_lengths_take_little_time():
    tree = Tree()
    for i in range(20_000):
        tree.add(f"v{i}", (i,))
    assert tree.dimensions("v19999") == ("phony_dim_19999",)


# ── Names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_variable_that_is_no_coordinate_of_its_name():
    tree = Tree().scale("x", (3,), NAME=PLACEHOLDER).add("_nc4_non_coord_x", (3,), "x")
    assert tree.view().datasets["_nc4_non_coord_x"] == DatasetView("x", ("x",))


def test_prefix_stays_where_the_name_is_taken():
    tree = Tree().add("x", (3,)).add("_nc4_non_coord_x", (3,)).add("g/y", ()).add("_nc4_non_coord_g", ())
    assert tree.view().datasets["_nc4_non_coord_x"].name == "_nc4_non_coord_x"
    assert tree.view().datasets["_nc4_non_coord_g"].name == "_nc4_non_coord_g"


# ── Attributes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bookkeeping_is_hidden():
    attributes = dict.fromkeys(HIDDEN_ATTRIBUTES, "text") | {"units": "K"}
    assert visible_attributes(attributes) == {"units": "K"}


@pytest.mark.parametrize("name", ["DIMENSION_SCALE", b"DIMENSION_SCALE", np.bytes_("DIMENSION_SCALE")])
def test_class_and_name_of_a_scale_are_hidden(name):
    assert visible_attributes({"CLASS": name, "NAME": "x", "units": "K"}) == {"units": "K"}


def test_class_and_name_of_other_objects_stay():
    attributes = {"CLASS": "IMAGE", "NAME": "moon", "DIMENSION_LABELS": ["", "x"]}
    assert visible_attributes(attributes) == attributes


# ── As the libraries show it ─────────────────────────────────────────────────────────────────────────────────────────


def scanned(path: Path) -> NetCDFView:
    with h5py.File(path) as file:
        return netcdf_view(Walk(SkipLog(strict=True)).root(file))


def shown(group: Any, prefix: str = "") -> dict[str, tuple[str, ...]]:
    """Dimensions of every variable, by path, as either library has them."""
    found = {prefix + name: tuple(variable.dimensions) for name, variable in group.variables.items()}
    for name, child in group.groups.items():
        found |= shown(child, f"{prefix}{name}/")
    return found


def ours(view: NetCDFView) -> dict[str, tuple[str, ...]]:
    return {
        "/".join((*path.split("/")[:-1], dataset.name)): dataset.dimensions
        for path, dataset in view.datasets.items()
        if not dataset.is_placeholder
    }


def write_netcdf(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time")
        file.createDimension("x", 3)
        file.createDimension("n", 8)
        file.createVariable("time", "S1", ("time", "n"))[:2] = np.full((2, 8), b"a")
        file.createVariable("x", "f4", ("x",))
        file.createVariable("n", "f4", ("x", "n"))
        file.createVariable("v", "f4", ("time", "x"))[:5] = 1
        group = file.createGroup("g").createGroup("h")
        group.createDimension("x", 4)
        group.createVariable("w", "i2", ("time", "x"))
        group.createVariable("s", "i2", ())


def write_plain(path: Path) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        for name in ("", "b", "a", "a/c"):
            group = file.require_group(name or "/")
            for i in range(5):
                group[f"v{i}"] = np.zeros(rng.integers(0, 4, rng.integers(0, 4)))
        file["b/v1"].make_scale("v1") if file["b/v1"].ndim == 1 else None


@pytest.mark.parametrize("library", [netCDF4.Dataset, h5netcdf.File])
def test_netcdf_file_as_the_libraries_show_it(tmp_path, library):
    write_netcdf(tmp_path / "file.nc")
    view = scanned(tmp_path / "file.nc")
    with library(tmp_path / "file.nc") as file:
        assert ours(view) == shown(file)
        assert view.unlimited == {"": ("time",), "g": (), "g/h": ()}


def test_plain_file_as_h5netcdf_shows_it(tmp_path):
    write_plain(tmp_path / "file.h5")
    with h5netcdf.File(tmp_path / "file.h5", phony_dims="sort") as file:
        assert ours(scanned(tmp_path / "file.h5")) == shown(file)
