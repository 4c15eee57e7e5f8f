import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from virtualzarr_refs.chunk_grid import ChunkKeyEncoding
from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.references.chunk_keys import decode_keys, encode_keys

ENCODINGS = [ChunkKeyEncoding(name, separator) for name in ("default", "v2") for separator in ("/", ".")]


@given(
    shape=st.lists(st.integers(1, 12), max_size=4).map(tuple),
    encoding=st.sampled_from(ENCODINGS),
    prefix=st.sampled_from(["", "x/", "50%/ü/", "%d/"]),
    data=st.data(),
)
def test_keys_are_those_of_the_encoding_and_decode_to_the_same_indexes(shape, encoding, prefix, data):
    size = int(np.prod(shape, dtype=int))
    positions = np.array(data.draw(st.lists(st.integers(0, size - 1), unique=True, min_size=1)), np.intp)
    keys = list(encode_keys(positions, shape, encoding, prefix))
    indexes = [tuple(map(int, np.unravel_index(p, shape))) if shape else () for p in positions]
    assert keys == [prefix + encoding.encode(index) for index in indexes]
    assert list(map(tuple, decode_keys(keys, len(prefix), len(shape), encoding).tolist())) == indexes


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "wrong",
    [
        "", "0", "c", "00/1", "01.1", "0/1/2", "0.1.2", "-1/0", "+1.0", "1/ 0", "a/b", "c/0", "c/0/x", "0/1\n0/1",
        "\u0661/\u0662", "9" * 19 + "/0", "0.1\n", "c/0/1\nc/0/2", "C/0/1", "0/1/", "/0/1", "0./1", "1e0/1", "0x1/1",
    ],
)  # fmt: skip
def test_a_key_that_names_no_chunk_is_quoted(encoding, wrong):
    good = encoding.encode((3, 4))
    with pytest.raises(ReferenceSetError) as caught:
        decode_keys([f"x/{good}", f"x/{wrong}", f"x/{good}"], 2, 2, encoding)
    assert repr(f"x/{wrong}") in str(caught.value)


def test_a_scalar_has_one_key():
    assert decode_keys(["x/c"], 2, 0, ChunkKeyEncoding()).shape == (1, 0)
    with pytest.raises(ReferenceSetError, match="0 dimensions"):
        decode_keys(["x/0"], 2, 0, ChunkKeyEncoding())
    for key in ("x/0", "x/"):
        assert decode_keys([key], 2, 0, ChunkKeyEncoding("v2", ".")).shape == (1, 0)
