"""Groups, links and names."""

from __future__ import annotations

import gc

import h5py
import numpy as np
import pytest
import zarr
from h5py import h5d, h5f, h5g, h5p, h5s, h5t

import virtualzarr_refs as vzr
from scanners.hdf5 import tree
from tests.scanners.hdf5.comparison import assert_reads_as_h5py, opened, reasons, scan


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.h5"


def add(file: h5py.File, name: bytes, value: int) -> None:
    """A dataset of any name, also one that is no UTF-8."""
    dataset = h5d.create(file.id, name, h5t.NATIVE_INT32, h5s.create_simple((1,)))
    dataset.write(h5s.ALL, h5s.ALL, np.array([value], "i4"))


# ── Links ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_links_within_the_file(path, libver):
    with h5py.File(path, "w", libver=libver) as file:
        file["a/data"] = [1, 2]
        file["hard"] = file["a/data"]
        file["group"] = file["a"]
        file["soft"] = h5py.SoftLink("/a/data")
        file["a/relative"] = h5py.SoftLink("data")
        file["to_soft"] = h5py.SoftLink("soft")
    root = opened(assert_reads_as_h5py(path))
    names = ["a/data", "a/relative", "group/data", "group/relative", "hard", "soft", "to_soft"]
    assert [root[name][...].tolist() for name in names] == [[1, 2]] * 7


def test_dangling_links_carry_nothing(path):
    with h5py.File(path, "w") as file:
        file["data"] = 1
        file["soft"] = h5py.SoftLink("/nowhere")
        file["circle"] = h5py.SoftLink("circle")
    group = vzr.scan(path, strict=True)
    assert list(group.arrays) == ["data"]
    assert not any(record.loses_data for record in group.skipped)
    assert "/nowhere" in reasons(group)["soft"]


def test_links_back_to_what_holds_them(path):
    with h5py.File(path, "w") as file:
        file["a/b/data"] = 1
        file["a/b/self"] = file["a/b"]
        file["a/b/up"] = h5py.SoftLink("/a")
        file["root"] = file["/"]
    group = vzr.scan(path, strict=True)
    assert [name for name, _ in group.walk_arrays()] == ["a/b/data"]
    assert set(reasons(group)) == {"a/b/self", "a/b/up", "root"}


def test_groups_that_hold_each_other_end(path, monkeypatch):
    monkeypatch.setattr(tree, "MAX_REPEATED_GROUPS", 100)
    with h5py.File(path, "w") as file:
        groups = [file.create_group(f"g{i}") for i in range(12)]
        for group in groups:
            for other in groups:
                group[f"to_{other.name[1:]}"] = other
        groups[0]["data"] = 1
    assert "g0/data" in dict(scan(path).walk_arrays())
    assert any("very many" in reason for reason in reasons(scan(path)).values())


def test_external_links(tmp_path, path):
    with h5py.File(tmp_path / "other.h5", "w", userblock_size=512) as file:
        file["deep/data"] = np.arange(3)
        file.create_dataset("deep/chunked", data=np.arange(9.0), chunks=(2,), compression="gzip")
        file["deep/back"] = h5py.ExternalLink("x.h5", "/")
    with h5py.File(path, "w") as file:
        file["group"] = h5py.ExternalLink("other.h5", "/deep")
        file["array"] = h5py.ExternalLink("other.h5", "/deep/data")
        file["no_file"] = h5py.ExternalLink("nowhere.h5", "/x")
        file["no_object"] = h5py.ExternalLink("other.h5", "/x")
    group = scan(path)
    root = opened(group)
    assert root["array"][...].tolist() == root["group/data"][...].tolist() == [0, 1, 2]
    assert root["group/chunked"][...].tolist() == list(range(9))
    assert set(reasons(group)) == {"group/back", "no_file", "no_object"}
    assert "nowhere.h5" in reasons(group)["no_file"]


@pytest.mark.parametrize("depth", [tree.MAX_DEPTH - 1, tree.MAX_DEPTH + 20, 2000])
def test_deep_groups(path, depth):
    with h5py.File(path, "w") as file:
        file["/".join(["g"] * depth) + "/data"] = 1
    group = scan(path)
    if depth < tree.MAX_DEPTH:
        assert [name.count("/") for name, _ in group.walk_arrays()] == [depth]
    else:
        (reason,) = reasons(group).values()
        assert "deep" in reason


def test_committed_types_are_no_nodes(path):
    with h5py.File(path, "w") as file:
        file["type"] = np.dtype("f8")
        file["group/type"] = np.dtype("i4")
        file.create_dataset("data", data=[1.5], dtype=file["type"])
    group = assert_reads_as_h5py(path)
    assert not group["group"].arrays


def test_order_of_creation_is_kept_where_it_is_known(path):
    names = ["b", "a", "c"]
    with h5py.File(path, "w", track_order=True) as file:
        for name in names:
            file[name] = 1
    assert list(scan(path).arrays) == names


def test_many_links(path):
    with h5py.File(path, "w", libver="latest") as file:
        for number in range(500):  # dense storage
            add(file, b"n%d" % number, number)
    root = opened(scan(path))
    assert [int(root[f"n{number}"][0]) for number in range(500)] == list(range(500))


# ── Names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name",
    ["a b", " ", "\n", "c", "0", "%41", "a:b*?", "__x", ".zattrs", "zarr.json2", "Grüße", "🎉", "x" * 300, "a\x01"],
)
def test_odd_names(path, name):
    with h5py.File(path, "w") as file:
        add(file, name.encode(), 7)
        file[f"g{name}"] = file.create_group("inner")
    group = vzr.scan(path, strict=True)
    assert opened(group)[name][...].tolist() == [7]
    assert isinstance(opened(group)[f"g{name}"], zarr.Group)


def test_names_in_latin_1(path):
    with h5py.File(path, "w") as file:
        add(file, b"caf\xe9", 7)
        h5d.create(h5g.create(file.id, b"\xff"), b"\xe9", h5t.NATIVE_INT32, h5s.create_simple((1,)))
    root = opened(vzr.scan(path, strict=True))
    assert root["café"][...].tolist() == [7]
    assert root["ÿ/é"].shape == (1,)


@pytest.mark.parametrize("name", [b"..", b"...", b"zarr.json", b"a\\b"])
def test_names_that_zarr_cannot_have(path, name):
    with h5py.File(path, "w") as file:
        file["data"] = 1
        add(file, name, 1)
        file.create_group("group")
        add(file["group"], name, 1)
    group = scan(path)
    assert list(group.arrays) == ["data"]
    assert set(reasons(group)) == {name.decode(), f"group/{name.decode()}"}
    with pytest.raises(vzr.UnsupportedError, match="rename"):
        vzr.scan(path, strict=True)


@pytest.mark.parametrize("kind", ["dataset", "group"])
def test_two_names_that_are_the_same_text(path, kind):
    with h5py.File(path, "w") as file:
        add(file, b"caf\xe9", 1)
        if kind == "group":
            file.create_group("café")
        else:
            add(file, "café".encode(), 2)
    group = scan(path)
    assert len(group.arrays) + len(group.groups) == 1
    assert "another" in reasons(group)["café"]


# ── Open objects ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def without_gc():
    """No cycle of references may hide that something stays open until it is found."""
    gc.disable()
    yield
    gc.enable()


def open_objects() -> int:
    return h5f.get_obj_count(h5f.OBJ_ALL, h5f.OBJ_ALL)


@pytest.mark.usefixtures("without_gc")
def test_nothing_stays_open(tmp_path, path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["data"] = [1, 2]
        file["refused"] = h5py.Empty("i4")
    with h5py.File(path, "w") as file:
        file["data"] = [1.0, 2.0]
        file["data"].make_scale()
        file["more"] = [1.0, 2.0]
        file["more"].dims[0].attach_scale(file["data"])
        file["empty"] = h5py.Empty("i4")
        file["other"] = h5py.ExternalLink("other.h5", "/")
        file.create_dataset("refused", (1,), h5py.vlen_dtype("i4"))
        file.create_dataset("also", (1,), h5t.NATIVE_LDOUBLE.dtype)
        file.attrs.create("refused", np.array([np.arange(2), np.arange(1)], object), dtype=h5py.vlen_dtype("i8"))
        file["text"] = ["a", "b"]
        file["type"] = np.dtype([("a", "i4"), ("b", "S3")])
        file.create_dataset("typed", (2,), file["type"])
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_external(b"missing", 0, 8)
        h5d.create(file.id, b"external", h5t.NATIVE_INT64, h5s.create_simple((1,)), properties)
    del file, properties
    assert len(reasons(scan(path))) == 6
    before = open_objects()  # h5py keeps some types for good when it first meets them
    scan(path)
    assert open_objects() == before


@pytest.mark.usefixtures("without_gc")
def test_nothing_stays_open_after_an_error(path):
    with h5py.File(path, "w") as file:
        file["empty"] = h5py.Empty("i4")
    del file
    before = open_objects()
    with pytest.raises(vzr.UnsupportedError):
        vzr.scan(path, strict=True)
    assert open_objects() == before
