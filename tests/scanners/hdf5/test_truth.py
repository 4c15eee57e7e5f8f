"""What the check takes for the truth about an HDF5 file, where it is not simply what h5py shows."""

from __future__ import annotations

import io

import h5py
import numpy as np
import pytest

import virtualzarr_refs as vzr
from scanners.hdf5.truth import HDF5Truth

ALL = (slice(0, 4),)


@pytest.fixture
def files(tmp_path):
    """A file that links to another and keeps values outside, as its bytes."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(4)
    path = tmp_path / "main.h5"
    with h5py.File(path, "w") as file:
        file["own"] = np.arange(4)
        file["link"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/x")
        file.create_dataset("outside", (4,), "u1", external=[(str(tmp_path / "outside.bin"), 0, 4)])
        layout = h5py.VirtualLayout((4,), "i8")
        layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "x", (4,))
        file.create_virtual_dataset("virtual", layout)
    (tmp_path / "outside.bin").write_bytes(b"\0\1\2\3")
    return path


def test_local_file_leads_to_others(files):
    with h5py.File(files) as file:
        truth = HDF5Truth(file, is_local=True)
        for name in ("own", "link", "outside", "virtual"):
            assert truth.find(name).read(ALL).tolist() == [0, 1, 2, 3]


def test_remote_file_does_not_lead_to_local_ones(files):
    with h5py.File(io.BytesIO(files.read_bytes())) as file:
        truth = HDF5Truth(file, is_local=False)
        assert truth.find("own").read(ALL).tolist() == [0, 1, 2, 3]
        assert truth.find("link") is None
        for name in ("outside", "virtual"):
            with pytest.raises(vzr.UnsupportedError, match="other files"):
                truth.find(name)


def test_names_that_are_no_utf8(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        group = h5py.h5g.create(file.id, "Größe".encode("latin-1"))
        h5py.Group(group)["x"] = 1
        file["soft"] = h5py.SoftLink("/nowhere")
        truth = HDF5Truth(file, is_local=True)
        assert truth.find("Größe/x").read(()).tolist() == 1
        assert truth.find("Größe") is None
        assert truth.find("soft") is None
        assert truth.find("no/such") is None


def test_name_of_a_dimension_without_variable(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file.create_dataset("x", (3,), "f4").make_scale(
            "This is a netCDF dimension but not a netCDF variable.         3"
        )
        truth = HDF5Truth(file, is_local=True)
        assert truth.find("x") is None
        file["_nc4_non_coord_x"] = np.arange(2)
        truth = HDF5Truth(file, is_local=True)
        assert truth.find("x").shape == (2,)


def test_tagged_opaque_values(tmp_path):
    with h5py.File(tmp_path / "data.h5", "w") as file:
        kind = h5py.h5t.create(h5py.h5t.OPAQUE, 3)
        kind.set_tag(b"somebody's own")
        for name, space in (("x", h5py.h5s.create_simple((4,))), ("scalar", h5py.h5s.create(h5py.h5s.SCALAR))):
            data = h5py.h5d.create(file.id, name.encode(), kind, space)
            values = np.frombuffer(b"abcdefghijkl", "V3")
            values = values if name == "x" else values[0:1].reshape(())
            data.write(h5py.h5s.ALL, h5py.h5s.ALL, values, kind)
        truth = HDF5Truth(file, is_local=True)
        assert truth.find("x").read((slice(1, 3),)).tobytes() == b"defghi"
        assert truth.find("scalar").read(()).tobytes() == b"abc"


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_what_was_never_written(tmp_path, libver):
    with h5py.File(tmp_path / "data.h5", "w", libver=libver) as file:
        file.create_dataset("contiguous", (4,), "f4")
        file.create_dataset("chunked", (9, 9), "f4", chunks=(2, 3), maxshape=(None, 9))[4, 4] = 1
        file.create_dataset("nothing", (9, 9), "f4", chunks=(2, 3))
        file.create_dataset("doubtful", (2, 9), "f4", chunks=(1, 3), maxshape=(2, None))[1, 8] = 1
        file["written"] = np.zeros(4)
        truth = HDF5Truth(file, is_local=True)
        unwritten = {name: truth.find(name).is_unwritten for name in file}
        assert unwritten["contiguous"](ALL)
        assert not unwritten["written"](ALL)
        assert unwritten["nothing"]((slice(0, 9), slice(0, 9)))
        assert unwritten["chunked"]((slice(0, 4), slice(0, 9)))
        assert not unwritten["chunked"]((slice(4, 5), slice(5, 6)))
        assert unwritten["chunked"]((slice(4, 6), slice(6, 9)))
        assert not unwritten["doubtful"]((slice(0, 1), slice(0, 3)))
