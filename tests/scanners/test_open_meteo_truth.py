"""``vzrefs check`` of Open-Meteo's files, against omfiles."""

from __future__ import annotations

import builtins

import fsspec
import omfiles
import pytest

import virtualzarr_refs as vzr
from tests.corpus import corpus_files
from tests.open_meteo_files import CASES, values, write
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.manifest import Manifest


def nested(path):
    """Groups, an array within an array, and axes of length one."""
    writer = omfiles.OmFileWriter.at_path(str(path))
    inner = writer.write_array(values("noise", (3, 1, 5), "i2"), chunks=[2, 1, 2], name="inner")
    outer = writer.write_array(values("smooth", (1, 9), "f4"), chunks=[1, 4], name="outer", children=[inner])
    group = writer.write_group("below", [outer])
    writer.close(writer.write_group("root", [group]))
    return path


def reports(group):
    return {report.path: report for report in vzr.check(group).arrays}


@pytest.mark.parametrize(("dtype", "compression"), CASES, ids=lambda value: value)
def test_values_are_compared(dtype, compression, tmp_path):
    path = write(
        tmp_path / "a.om", values("noise", (7, 9), dtype), (3, 4), "v", compression=compression, scale_factor=1.0
    )
    (report,) = reports(vzr.scan(path)).values()
    assert report.ok
    rounded = compression.endswith("logarithmic")
    assert (report.equal, report.not_compared) == ((0, 9) if rounded else (9, 0))


def test_every_array_of_a_tree_is_found(tmp_path):
    group = vzr.scan(nested(tmp_path / "a.om"))
    found = reports(group)
    assert found.keys() == {path for path, _ in group.walk_arrays()}
    assert all(report.equal == report.chunks for report in found.values())


def test_a_wrong_chunk_is_found(tmp_path):
    path = write(tmp_path / "a.om", values("noise", (8, 8), "f4"), (4, 4), "v", scale_factor=100.0)
    group = vzr.scan(path)
    manifest = group["v"].manifest
    swapped = Manifest(manifest.urls, manifest.url_id, manifest.offset[::-1], manifest.length[::-1])
    wrong = vzr.VirtualGroup(group.metadata, {"v": VirtualArray(group["v"].metadata, swapped)})
    assert reports(wrong)["v"].different == 4


def test_a_remote_file_is_compared(tmp_path):
    path = write(tmp_path / "a.om", values("noise", (8, 8), "f4"), (4, 4), "v", scale_factor=100.0)
    fsspec.filesystem("memory").pipe_file("/truth/a.om", path.read_bytes())
    (report,) = reports(vzr.scan("memory://truth/a.om")).values()
    assert report.equal == 4


@pytest.mark.filterwarnings("ignore::virtualzarr_refs.SkippedNodeWarning")
@pytest.mark.parametrize("path", corpus_files("om"), ids=lambda path: path.name)
def test_files_of_the_corpus(path):
    for report in reports(vzr.scan(path)).values():
        assert report.ok, report


def test_without_the_library_nothing_is_compared(tmp_path, monkeypatch):
    path = write(tmp_path / "a.om", values("noise", (8, 8), "f4"), (4, 4), "v", scale_factor=100.0)
    real = builtins.__import__

    def missing(name, *arguments, **options):
        if name == "omfiles":
            raise ModuleNotFoundError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    (report,) = reports(vzr.scan(path)).values()
    assert report.not_compared == 4
    assert "pip install omfiles" in report.reason
