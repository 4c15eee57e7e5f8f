"""Other Zarr readers read one HDF5 file: untouched, as the shards of a reference set; and with its indexes in it."""

import numpy as np
import pytest
import tensorstore
import zarr

import virtualzarr_refs as vzr
from tests.readers import read_with_zarrita, serving, static
from tests.shards.files import STORAGE, values, write
from virtualzarr_refs.embedding import embed


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write(tmp_path_factory.mktemp("readers") / "file.h5", others=False)


@pytest.fixture(scope="module")
def expected(source):
    return {name: array for name, array in values(source).items() if name in STORAGE}


@pytest.fixture(scope="module")
def folder(source):
    return embed(source, source.with_name("copy.h5")).hierarchy


@pytest.fixture(scope="module")
def linked(folder):
    with static(folder) as address:
        yield address


@pytest.fixture(scope="module")
def untouched(source):
    refs = source.with_name("set.json")
    vzr.write_json(vzr.to_shards(vzr.scan(source)), refs)
    with serving(refs) as address:
        yield address


PLACES = ["folder", "linked", "untouched"]


@pytest.mark.parametrize("place", PLACES)
def test_zarr_python(place, request, expected):
    group = zarr.open_group(str(request.getfixturevalue(place)), mode="r")
    for name, array in expected.items():
        assert group[name].shards is not None
        np.testing.assert_array_equal(group[name][...], array)
        np.testing.assert_array_equal(group[name][3:, 7], array[3:, 7])


@pytest.mark.parametrize("place", PLACES)
def test_zarrs(place, request, expected):
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True}):
        group = zarr.open_group(str(request.getfixturevalue(place)), mode="r")
        for name, array in expected.items():
            np.testing.assert_array_equal(group[name][...], array)
            np.testing.assert_array_equal(group[name][1:3], array[1:3])


@pytest.mark.parametrize("place", PLACES)
def test_tensorstore_which_has_no_deflate(place, request, expected):
    address = request.getfixturevalue(place)
    url = address if isinstance(address, str) else f"file://{address}"
    opened = tensorstore.open({"driver": "zarr3", "kvstore": f"{url}/raw/"}).result()
    np.testing.assert_array_equal(opened.read().result(), expected["raw"])
    np.testing.assert_array_equal(opened[3:, 7].read().result(), expected["raw"][3:, 7])


@pytest.mark.parametrize("place", ["linked", "untouched"])
def test_zarrita(place, request, expected):
    found = dict(read_with_zarrita(request.getfixturevalue(place), expected))
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
