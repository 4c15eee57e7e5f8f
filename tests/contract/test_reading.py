"""What everything that serves the bytes of a hierarchy must do."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from virtualzarr_refs.errors import SourceChangedError, SourceError, SourceTruncatedError

STRANGERS = (
    "",
    "/",
    "..",
    "../plain/zarr.json",
    "plain/../plain/zarr.json",
    "plain",
    "plain/c",
    "plain/c/0",
    "plain/c/0/0/0",
    "plain/c/01/0",
    "plain/c/-1/0",
    "plain/c/+1/0",
    "plain/c/99/0",
    "plain/c/0/3",
    "plain/c/99999999999999999999999/0",
    "plain/c/1_0/0",
    "plain/c/٣/0",
    "plain/c.0.0",
    "plain/0/0",
    "plain/.zarray",
    "plain/zarr.json/zarr.json",
    "inline/c/1",
    "mixed/c/3",
    "holes/c/0/0",
    "nothing/c/0/0",
    "zero_length/c/0/0",
    "scalar/0",
    "scalar/c/0",
    "scalar_v2/c",
    "deep/dots/c/0/0",
    "deep/v2/0/0",
    "deep/v2_slash/0.0",
    "deep/er",
    "no/such/group/zarr.json",
    ".zgroup",
)


def test_chunks(reader, sample):
    assert {key: reader.read(key) for key in sample.chunks} == sample.chunks


def test_metadata(reader, sample):
    assert {key: json.loads(reader.read(key)) for key in sample.metadata} == sample.metadata


@pytest.mark.parametrize("key", STRANGERS)
def test_nothing_is_under_other_keys(reader, sample, key):
    assert reader.read(key) is None
    assert reader.read_range(key, 0, 1) is None
    assert reader.read_suffix(key, 1) is None
    if not (reader.folders_exist and key.strip("/") in folders(sample.keys)):
        assert not reader.exists(key)
        assert reader.size(key) is None


def test_ranges(reader, sample):
    for key, data in sample.chunks.items():
        for start, stop in ((0, len(data)), (0, 1), (1, 4), (2, 5), (3, 3), (0, 10**6), (10**6, 10**6 + 1)):
            assert reader.read_range(key, start, stop) == data[start:stop], (key, start, stop)


def test_ranges_that_straddle_the_number_of_a_variant(reader, sample):
    data = sample.chunks["mixed/c/2"]
    for start in range(4):
        for stop in range(start, 7):
            assert reader.read_range("mixed/c/2", start, stop) == data[start:stop]
            assert reader.read_range("mixed/c/1", start, stop) == sample.chunks["mixed/c/1"][start:stop]


@pytest.mark.parametrize("length", [1, 2, 5, 10**6])
def test_suffixes(reader, sample, length):
    for key, data in sample.chunks.items():
        assert reader.read_suffix(key, length) == data[-length:], key


def test_ranges_of_metadata(reader, sample):
    whole = reader.read("plain/zarr.json")
    assert reader.read_range("plain/zarr.json", 3, 20) == whole[3:20]
    assert reader.read_suffix("plain/zarr.json", 9) == whole[-9:]


def test_sizes(reader, sample):
    assert {key: reader.size(key) for key in sample.keys} == {key: len(reader.read(key)) for key in sample.keys}


def test_existence(reader, sample):
    assert all(reader.exists(key) for key in sample.keys)


def test_the_list_has_each_key_once(reader, sample):
    listed = reader.list()
    assert len(listed) == len(set(listed))
    assert set(listed) == sample.keys


def folders(keys):
    return {key[:i] for key in keys for i, character in enumerate(key) if character == "/"} | {""}


def test_every_folder_holds_what_the_keys_say(reader, sample):
    for folder in folders(sample.keys):
        beneath = f"{folder}/" if folder else ""
        names = {key.removeprefix(beneath).partition("/")[0] for key in sample.keys if key.startswith(beneath)}
        listed = reader.list_dir(folder)
        assert sorted(listed) == sorted(names), folder


@pytest.mark.parametrize("folder", ["nowhere", "plain/c/9", "plain/c/01", "plain/d", "nothing/c", "deep/er/nowhere"])
def test_other_folders_are_empty(reader, folder):
    assert reader.list_dir(folder) == []


@pytest.mark.parametrize("key", ["plain/c/0/0", "mixed/c/1", "several/c/1"])
def test_a_missing_source_is_an_error_and_never_a_missing_chunk(kind, options, sample, key):
    for file in sample.folder.iterdir():
        file.unlink()
    reader = kind(sample.group, **options)
    message = "is not there" if kind.hides_sources else "no such file"
    with pytest.raises(SourceError, match=message) as caught:
        reader.read(key)
    assert not isinstance(caught.value, FileNotFoundError | KeyError)
    assert kind.hides_sources or caught.value.url.endswith(".bin")
    with pytest.raises(SourceError, match=message) as caught:
        reader.read_range(key, 0, 5)
    assert not isinstance(caught.value, FileNotFoundError | KeyError)


def test_what_needs_no_source_is_there_without_it(kind, options, sample):
    for file in sample.folder.iterdir():
        file.unlink()
    reader = kind(sample.group, **options)
    assert set(reader.list()) == sample.keys
    assert all(reader.exists(key) for key in sample.keys)
    assert reader.read("inline/c/0") == b"ab"
    assert reader.read("mixed/c/2") == sample.chunks["mixed/c/2"]


def test_a_source_that_goes_away_while_it_is_used(reader, sample):
    assert reader.read("plain/c/0/0") == sample.chunks["plain/c/0/0"]
    (sample.folder / "first.bin").unlink()
    with pytest.raises(SourceError) as caught:
        reader.read("plain/c/0/1")
    assert not isinstance(caught.value, FileNotFoundError | KeyError)


def test_a_source_that_was_cut_short(kind, options, sample):
    cut = sample.folder / "first.bin"
    cut.write_bytes(cut.read_bytes()[:3000])
    reader = kind(sample.group, **options)
    assert reader.read("plain/c/0/0") == sample.chunks["plain/c/0/0"]
    with pytest.raises(SourceError if kind.hides_sources else SourceTruncatedError):
        reader.read("plain/c/1/1")


def test_a_source_that_is_cut_short_while_it_is_used(reader, sample):
    reader.read("plain/c/0/0")
    cut = sample.folder / "first.bin"
    cut.write_bytes(cut.read_bytes()[:3000])
    with pytest.raises(SourceError if reader.hides_sources else (SourceTruncatedError, SourceChangedError)):
        reader.read("plain/c/1/1")


def test_a_source_that_is_a_folder(kind, options, sample):
    (sample.folder / "first.bin").unlink()
    (sample.folder / "first.bin").mkdir()
    with pytest.raises(SourceError) as caught:
        kind(sample.group, **options).read("plain/c/0/0")
    assert not isinstance(caught.value, FileNotFoundError | IsADirectoryError | KeyError)


def test_eight_threads(reader, sample):
    keys = [*sample.chunks] * 8
    with ThreadPoolExecutor(8) as threads:
        read = list(threads.map(reader.read, keys))
    assert dict(zip(keys, read, strict=True)) == sample.chunks
    assert read == [sample.chunks[key] for key in keys]


def test_pickled_after_use(reader, sample):
    reader.read("plain/c/0/0")
    twin = reader.pickled()
    assert {key: twin.read(key) for key in sample.chunks} == sample.chunks
    assert set(twin.list()) == sample.keys
