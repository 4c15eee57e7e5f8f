"""The command line, as a user runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import httpx
import netCDF4
import numpy as np
import pytest
from click.testing import CliRunner

import virtualzarr_refs as vzr
from virtualzarr_refs.cli import main, output
from virtualzarr_refs.cli import serve as serve_module
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup

ESCAPE = "\x1b"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every command runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def january(folder):
    path = folder / "january.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 4)
        file.createVariable("time", "i4", ("time",), chunksizes=(8,))[:] = np.arange(5)
        file.createVariable("t2m", "f4", ("time", "x"), chunksizes=(2, 4), zlib=True)[:] = np.arange(20).reshape(5, 4)
        file.createVariable("station", str, ("x",))[:] = np.array(["a", "ß", "", "d"], object)
        file.createGroup("forecast").createVariable("u", "f8", ("x",))[:] = np.arange(4)
    return path


@pytest.fixture
def odd(folder):
    """A file with something that has to be left out."""
    path = folder / "odd.h5"
    with h5py.File(path, "w") as file:
        file["fine"] = np.arange(10, dtype="<i4")
        file["null"] = h5py.Empty("f4")
    return path


@pytest.fixture
def refs(january):
    assert run("scan", "january.nc", "-o", "january.json").exit_code == 0
    return Path("january.json")


def run(*arguments):
    """Run a command in this process. An exception that is no exit is let through."""
    result = CliRunner().invoke(main, [*map(str, arguments)], prog_name="vzrefs")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert ESCAPE not in result.output
    assert "Traceback" not in result.output
    return result


def run_program(*arguments, **environment):
    """Run a command as a program, its output in pipes."""
    command = [sys.executable, "-m", "virtualzarr_refs.cli", *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603


def edit(path, key, change):
    document = json.loads(path.read_text())
    document["refs"][key] = change(document["refs"][key])
    path.write_text(json.dumps(document))


# ── The program ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_scan_keeps_what_it_found(january, monkeypatch):
    assert run("scan", "january.nc", "-o", "a.json", "--cache", "kept").exit_code == 0
    monkeypatch.setattr("virtualzarr_refs.scanning.find_scanner", lambda _: pytest.fail("scanned again"))
    assert run("scan", "january.nc", "-o", "b.json", "--cache", "kept").exit_code == 0
    assert vzr.open_refs("a.json").equals(vzr.open_refs("b.json"))


def test_version():
    assert run("--version").output == f"vzrefs, version {vzr.__version__}\n"


@pytest.mark.parametrize("command", [(), ("scan",), ("info",), ("check",)])
def test_help_has_an_example(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    example = result.output.partition("Example:\n")[2].splitlines()[0]
    assert example.startswith(" ".join(("    vzrefs", *command)))


def test_help_does_not_wait_for_imports():
    program = "import sys, virtualzarr_refs.cli; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert not {"zarr", "xarray", "h5py", "fsspec", "numpy", "rich"} & set(result.stdout.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("scan",),
        ("scan", "january.nc"),
        ("scan", "january.nc", "-o", "x.json", "--zarr-format", "4"),
        ("scan", "january.nc", "-o", "x.json", "--inline-threshold", "lots"),
        ("scan", "january.nc", "-o", "x.json", "--storage-options", "anon"),
        ("scan", "january.nc", "-o", "x.json", "--storage-options", "[1]"),
        ("scan", "january.nc", "odd.h5", "-o", "x.json"),
        ("info",),
        ("check", "january.json", "--sample", "0"),
        ("no-such-command",),
    ],
)
def test_wrong_usage(arguments, january, odd):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr
    assert not Path("x.json").exists()


@pytest.mark.parametrize("command", [("info",), ("check",), ("scan", "-o", "x.json")])
def test_missing_file(command):
    result = run(command[0], "nowhere.nc", *command[1:])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: there is no such file")
    assert str(Path("nowhere.nc").absolute()) in result.stderr


def test_file_of_no_known_format(folder):
    Path("notes.txt").write_text("nothing")
    result = run("info", "notes.txt")
    assert result.exit_code == 1
    assert "none of the formats" in result.stderr
    assert "  offset: 0\n" in result.stderr


def test_interrupt_is_quiet(january, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("virtualzarr_refs.references.recognition.open_hierarchy", interrupt)
    result = run("info", january)
    assert (result.exit_code, result.output) == (130, "")


def test_broken_pipe_is_quiet(refs):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        command = [sys.executable, "-m", "virtualzarr_refs.cli", "info", "january.json"]
        result = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603
    assert result.stderr == ""
    assert result.returncode != 0


def test_pipes_get_plain_text(refs):
    for command in ("info", "check"):
        result = run_program(command, "january.json", FORCE_COLOR="1", TERM="xterm-256color")
        assert (result.returncode, result.stderr) == (0, "")
        assert ESCAPE not in result.stdout
        assert "t2m" in result.stdout


def test_installed_program(january):
    program = Path(sys.executable).with_name("vzrefs")
    if not program.exists():
        pytest.skip("the package is not installed")
    command = [str(program), "scan", "january.nc", "-o", "x.json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert (result.returncode, result.stderr) == (0, "")
    assert Path("x.json").exists()


def test_encoding_that_lacks_letters(folder):
    with h5py.File("greek.h5", "w") as file:
        file["θερμοκρασία"] = 1
    result = run_program("check", "greek.h5", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert result.returncode == 0
    assert "\\u03b8" in result.stdout


def test_names_that_would_drive_the_terminal(folder):
    with h5py.File("evil.h5", "w") as file:
        file["\x1b[31mred\a"] = 1
        file["\x1b]0;title\a"] = h5py.Empty("f4")
    for arguments in (("info", "evil.h5"), ("check", "evil.h5"), ("scan", "evil.h5", "-o", "evil.json")):
        result = run(*arguments)
        assert result.exit_code == 0
        assert "\a" not in result.output
        assert "\\x1b" in result.output


# ── scan ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_scan(january):
    result = run("scan", "january.nc", "-o", "january.json")
    assert result.exit_code == 0
    assert result.stdout.startswith("january.json: 4 arrays, 6 references, ")
    assert result.stderr == ""
    assert vzr.open_refs("january.json").equals(vzr.scan(january))


def test_scan_tells_what_it_leaves_out(odd):
    result = run("scan", "odd.h5", "-o", "odd.json")
    assert result.exit_code == 0
    assert result.stderr == "odd.h5: left out null: the dataset holds no values (null dataspace)\n"


def test_strict_scan(odd):
    result = run("scan", "odd.h5", "-o", "odd.json", "--strict")
    assert result.exit_code == 1
    assert "error: the dataset holds no values; without --strict it would be left out\n" in result.stderr
    assert "  node: null\n" in result.stderr
    assert f"  file: {odd}\n" in result.stderr
    assert "  feature: null dataspace\n" in result.stderr
    assert not Path("odd.json").exists()


def test_scan_into_a_folder(january, odd):
    result = run("scan", "january.nc", "odd.h5", "-o", "sets/of/refs")
    assert result.exit_code == 0
    assert sorted(path.name for path in Path("sets/of/refs").iterdir()) == ["january.json", "odd.json"]
    assert len(result.stdout.splitlines()) == 2


@pytest.mark.parametrize("output_", ["there", "new/"])
def test_scan_one_file_into_a_folder(january, output_):
    Path("there").mkdir()
    assert run("scan", "january.nc", "-o", output_).exit_code == 0
    assert (Path(output_) / "january.json").is_file()


def test_scan_of_two_files_with_one_name(january):
    Path("other").mkdir()
    Path("other/january.h5").write_bytes(january.read_bytes())
    result = run("scan", "january.nc", "other/january.h5", "-o", "out")
    assert result.exit_code == 2
    assert "january.nc and other/january.h5 would all be written to" in result.stderr
    assert not Path("out").exists()


def test_scan_goes_on_after_a_file_that_is_refused(january, odd):
    Path("broken.nc").write_bytes(january.read_bytes()[:2000])
    result = run("scan", "broken.nc", "missing.nc", "january.nc", "-o", "out")
    assert result.exit_code == 1
    assert [path.name for path in Path("out").iterdir()] == ["january.json"]
    assert result.stderr.count("error: ") == 2


def test_scan_does_not_replace(january, refs):
    before = refs.read_bytes()
    refs.write_bytes(before + b" ")
    result = run("scan", "january.nc", "-o", refs)
    assert result.exit_code == 2
    assert "--overwrite replaces it" in result.stderr
    assert refs.read_bytes() == before + b" "
    assert run("scan", "january.nc", "-o", refs, "--overwrite").exit_code == 0
    assert not refs.read_bytes().endswith(b" ")
    assert vzr.open_refs(refs).equals(vzr.scan(january))


def test_scan_never_replaces_what_is_no_set(january, odd):
    before = odd.read_bytes()
    for target in ("odd.h5", "january.nc"):
        assert run("scan", "january.nc", "-o", target, "--overwrite").exit_code == 2
    assert odd.read_bytes() == before


def test_scan_where_nothing_can_be_written(january):
    result = run("scan", "january.nc", "-o", "no/such/folder/x.json")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: No such file or directory\n  file: ")


def test_zarr_format_2(january):
    assert run("scan", "january.nc", "-o", "x.json", "--zarr-format", "2").exit_code == 0
    assert ".zgroup" in json.loads(Path("x.json").read_text())["refs"]


def test_limits(january):
    options = ("--inline-threshold", "4 B", "--materialise-limit", "1KiB")
    assert run("scan", "january.nc", "-o", "x.json", *options).exit_code == 0
    assert len(list(Path("x.data").iterdir())) == 1
    result = run("scan", "january.nc", "-o", "y.json", "--materialise-limit", "3")
    assert "left out station: its" in result.stderr


# ── info ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", ["january.json", "january.nc"])
def test_info(refs, january, target):
    result = run("info", target)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"{target} ({'file' if target.endswith('nc') else 'reference set'})"
    text = "\n".join(line.lstrip("│├└─ ") for line in lines)
    assert "t2m  float32  (time: 5, x: 4)\n3 x 1 regular chunks of (2, 4)\ncodecs bytes, " in text
    assert "forecast/\nu  float64  (x: 4)\n1 regular chunks of (4)\n" in text
    assert "references: 3 virtual, 0 inline, 0 missing" in text
    assert f"sources:\n{january}: 5 references, " in text
    assert "read when scanned:\nstation: values of variable length" in text
    assert "not shown, without data of their own:\nx: a NetCDF dimension without a variable" in text
    assert lines[-1].startswith("total: 4 arrays in 2 groups; references: 5 virtual, 1 inline, 0 missing; ")


def test_info_tells_what_was_left_out(odd):
    assert "left out:\n  null: the dataset holds no values (null dataspace)\n" in run("info", "odd.h5").stdout


def test_info_as_json(refs, january):
    document = json.loads(run("info", "january.json", "--json").stdout)
    assert list(document) == [
        "url", "kind", "groups", "arrays", "sources", "skipped", "references", "stored_bytes", "logical_bytes",
    ]  # fmt: skip
    assert document["groups"] == ["", "forecast"]
    t2m = next(array for array in document["arrays"] if array["path"] == "t2m")
    assert list(t2m) == [
        "path", "shape", "dtype", "dimensions", "chunk_grid", "grid_shape", "codecs", "references", "stored_bytes",
        "logical_bytes", "materialised",
    ]  # fmt: skip
    assert t2m["chunk_grid"] == {"name": "regular", "configuration": {"chunk_shape": [2, 4]}}
    assert t2m["references"] == {"virtual": 3, "inline": 0, "missing": 0}
    assert (t2m["shape"], t2m["grid_shape"], t2m["logical_bytes"]) == ([5, 4], [3, 1], 80)
    station = next(array for array in document["arrays"] if array["path"] == "station")
    assert station["logical_bytes"] is None
    assert station["materialised"].startswith("values of variable length")
    (source,) = document["sources"]
    assert (source["url"], source["references"]) == (str(january), 5)
    assert document["skipped"] == [
        {"path": "x", "reason": "a NetCDF dimension without a variable; arrays keep its name", "loses_data": False}
    ]
    assert document["stored_bytes"] == sum(array["stored_bytes"] for array in document["arrays"])


def test_info_of_many_sources_and_unequal_chunks(folder):
    template = {"data_type": "int32", "fill_value": 0, "codecs": [{"name": "bytes"}], "shape": [62]}
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[31, [1, 3], 28]]}}
    encoding = {"name": "default", "configuration": {"separator": "/"}}
    array = {"zarr_format": 3, "node_type": "array", **template, "chunk_grid": grid, "chunk_key_encoding": encoding}
    many = {**array, "shape": [30], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}}
    references = {"zarr.json": json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}})}
    references |= {"x/zarr.json": json.dumps(array), "many/zarr.json": json.dumps(many)}
    references |= {f"many/c/{i}": [f"https://user:secret@example.org/{i}.bin?sig=1", 0, 4] for i in range(30)}
    Path("set.json").write_text(json.dumps({"version": 1, "refs": references}))
    text = run("info", "set.json").stdout
    assert "5 rectilinear chunks of ([31, 3*1, 28])" in text
    assert "and 10 more; --json lists all" in text
    assert "secret" not in text + run("info", "set.json", "--json").stdout


# ── check ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", ["january.json", "january.nc"])
def test_check(refs, target):
    result = run("check", target)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "equal         t2m: 3 of 3 chunks\n" in result.stdout
    assert result.stdout.splitlines()[-1] == "4 arrays: 4 equal"


def test_check_finds_an_offset_off_by_one(refs, january):
    edit(refs, "forecast/u/c/0", lambda ref: [ref[0], ref[1] - 1, ref[2]])
    result = run("check", refs)
    assert result.exit_code == 1
    place = r"forecast/u: 1 of 1 chunks differ from the file, first at \[[01]\] \(chunk \[0\]\): \S+ instead of [01]\.0"
    assert re.search(f"different     {place}\n", result.stdout)
    assert result.stdout.splitlines()[-1] == "4 arrays: 3 equal, 1 different"
    assert re.match(f"error: 1 of 4 arrays cannot be confirmed; first {place}; ", result.stderr)
    assert "scan them again" in result.stderr


def test_check_finds_a_source_that_was_overwritten(refs, january):
    january.write_bytes(bytes(january.stat().st_size))
    result = run("check", refs)
    assert result.exit_code == 1
    assert "was it overwritten" in result.stdout


def test_check_finds_that_a_source_is_missing(refs, january):
    january.unlink()
    result = run("check", refs)
    assert result.exit_code == 1
    assert f"missing       {january}: there is no such file" in result.stdout
    assert "unreadable    t2m: 3 of 3 chunks cannot be read" in result.stdout


def test_check_tells_what_is_not_checked(odd):
    result = run("check", "odd.h5")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "left out      null: the dataset holds no values" in result.stdout


def test_check_a_sample_as_json(refs):
    result = run("check", refs, "--sample", "1", "--json")
    document = json.loads(result.stdout)
    assert document["ok"]
    assert document["sample"] == 1
    assert [array["checked"] for array in document["arrays"]] == [1, 1, 1, 1]


def test_failing_check_as_json(refs):
    edit(refs, "t2m/c/1/0", lambda ref: [ref[0], ref[1], ref[2] - 1])
    result = run("check", refs, "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert not document["ok"]
    assert {array["path"]: array["undecodable"] for array in document["arrays"]}["t2m"] == 1
    assert "t2m" in result.stderr


def test_check_says_what_was_not_compared(folder):
    for name in "ab":
        with h5py.File(f"{name}.h5", "w") as file:
            file.create_dataset("x", data=np.arange(4), chunks=(2,))
    one, other = (vzr.scan(f"{name}.h5").arrays["x"] for name in "ab")
    chunks = {(0,): one.manifest.chunk((0,)), (1,): other.manifest.chunk((1,))}
    array = VirtualArray(one.metadata, vzr.Manifest.from_chunks((2,), chunks))
    vzr.write_json(VirtualGroup(arrays={"x": array}), "both.json")
    result = run("check", "both.json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "not compared  x: 2 of 2 chunks can be decoded; several sources\n" in result.stdout


# ── Parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 * 2**30, "5.0 GiB"), (3 * 2**50, "3.0 PiB")],
)
def test_sizes(count, text):
    assert output.in_bytes(count) == text


# ── serve ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_serve(january):
    environment = {**os.environ, "VZREFS_TOKEN": "sesame"}
    command = [sys.executable, "-m", "virtualzarr_refs.cli", "serve", january.name, "--port", "0"]
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as program:
        address = re.search(r"http://\S+/", program.stdout.readline())[0]
        assert httpx.get(f"{address}zarr.json").status_code == 401
        got = httpx.get(f"{address}zarr.json", headers={"Authorization": "Bearer sesame"})
        program.send_signal(signal.SIGINT)
        log = "".join(program.communicate(timeout=60))
    assert "t2m" in got.json()["consolidated_metadata"]["metadata"]
    assert program.returncode == 0
    assert '"GET /zarr.json HTTP/1.1" 401' in log
    assert "sesame" not in log
    assert "Traceback" not in log


def test_several_files_are_served_as_groups(january, odd):
    with pytest.warns(vzr.SkippedNodeWarning):
        served = serve_module._open((str(january), str(odd)), allow=None)
    assert sorted(served.groups) == ["january", "odd"]
    assert [record.path for record in served.skipped] == ["january/x", "odd/null"]


def test_serve_refuses_what_it_cannot_do(january):
    assert run("serve", january, "--token", "").exit_code == 2
    assert run("serve", january, "--host", "256.0.0.1").exit_code == 1
    assert run("serve", "nothing.nc").exit_code == 1
    twice = run("serve", january, january)
    assert twice.exit_code == 2
    assert "two of the files have the name january" in twice.stderr
