import pickle
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.manifest import MISSING, InlineChunk, Manifest, VirtualChunk, index_of

HUGE = (10**6, 10**6)

chunks = st.none() | st.binary(max_size=3).map(InlineChunk) | st.builds(
    VirtualChunk, st.sampled_from("abc"), st.builds(ByteRange, st.integers(0, 2**63), st.integers(0, 2**40))
)  # fmt: skip


@st.composite
def described(draw):
    """A grid and what its chunks are."""
    grid_shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    return grid_shape, {index: draw(chunks) for index in product(*map(range, grid_shape))}


def present(what):
    return {index: chunk for index, chunk in what.items() if chunk is not None}


@given(described())
def test_every_chunk_comes_back(case):
    grid_shape, what = case
    manifest = Manifest.from_chunks(grid_shape, what)
    assert manifest.grid_shape == grid_shape
    assert {index: manifest.chunk(index) for index in what} == what
    assert list(manifest.indexes()) == sorted(present(what))
    assert manifest.count == len(present(what))
    assert manifest.size == prod(grid_shape)
    assert manifest.is_missing == (not present(what))
    lengths = [c.byte_range.length if isinstance(c, VirtualChunk) else len(c.data) for c in present(what).values()]
    assert manifest.nbytes == sum(lengths)


@given(described())
def test_chunks_by_the_start_of_their_index(case):
    grid_shape, what = case
    manifest = Manifest.from_chunks(grid_shape, what)
    for length in range(len(grid_shape) + 1):
        for prefix in product(*map(range, grid_shape[:length])):
            beneath = sorted(index for index in present(what) if index[:length] == prefix)
            assert list(manifest.indexes(prefix)) == beneath
            assert [index_of(p, grid_shape) for p in manifest.positions(prefix).tolist()] == beneath
            if length < len(grid_shape):
                assert manifest.next_numbers(prefix).tolist() == sorted({index[length] for index in beneath})


@given(described(), described())
def test_equality_is_that_of_the_chunks(one, other):
    first, second = Manifest.from_chunks(*one), Manifest.from_chunks(*other)
    assert first.equals(second) == ((one[0], present(one[1])) == (other[0], present(other[1])))


@given(described())
def test_the_order_of_the_urls_does_not_matter(case):
    manifest = Manifest.from_chunks(*case)
    order = {url: i for i, url in enumerate(reversed(manifest.urls))}
    ids = np.array([order[url] for url in manifest.urls] + [0], np.uint32)
    url_id = np.where(manifest.url_id == MISSING, MISSING, ids[np.minimum(manifest.url_id, len(order))])
    turned = Manifest(tuple(order), url_id.astype(np.uint32), manifest.offset, manifest.length, inline=manifest.inline)
    assert manifest.equals(turned)
    assert turned.equals(manifest)


@given(described())
def test_pickles(case):
    manifest = Manifest.from_chunks(*case)
    assert pickle.loads(pickle.dumps(manifest)).equals(manifest)


def columns(grid_shape=(2,), url_id=0):
    return np.full(grid_shape, url_id, np.uint32), np.zeros(grid_shape, np.uint64), np.ones(grid_shape, np.uint64)


def test_variants():
    variant = np.array([3, 0], np.uint16)
    manifest = Manifest(("a",), *columns(), variant)
    assert [manifest.variant_of((i,)) for i in range(2)] == [3, 0]
    assert Manifest(("a",), *columns()).variant_of((0,)) is None
    assert not manifest.equals(Manifest(("a",), *columns()))
    assert manifest.equals(Manifest(("a",), *columns(), variant.copy()))
    assert pickle.loads(pickle.dumps(manifest)).equals(manifest)


def test_renamed_urls():
    manifest = Manifest(("a", "b"), *columns()).rename_urls(str.upper)
    assert manifest.urls == ("A", "B")
    assert manifest.chunk((0,)).url == "A"


def test_columns_of_different_shapes():
    url_id, offset, length = columns()
    with pytest.raises(ValueError, match="shape"):
        Manifest(("a",), url_id, offset, length[:1])
    with pytest.raises(ValueError, match="shape"):
        Manifest(("a",), url_id, offset, length, np.zeros(3, np.uint16))


@pytest.mark.parametrize("position", [-1, 2])
def test_inline_chunks_outside_the_grid(position):
    with pytest.raises(ValueError, match="outside"):
        Manifest.from_inline((2,), {position: b""})


def test_urls_that_are_not_in_the_table():
    with pytest.raises(ValueError, match="table"):
        Manifest(("a",), *columns(url_id=1))
    with pytest.raises(ValueError, match="table"):
        Manifest(("a",), np.broadcast_to(np.uint32(1), (2,)), *columns()[1:])


@pytest.mark.parametrize("index", [(2,), (-1,), (), (0, 0)])
def test_chunks_outside_the_grid(index):
    with pytest.raises(IndexError):
        Manifest(("a",), *columns()).chunk(index)


@pytest.mark.parametrize("prefix", [(2,), (-1,), (0, 0)])
def test_no_index_starts_in_this_way(prefix):
    manifest = Manifest(("a",), *columns())
    with pytest.raises(IndexError):
        manifest.positions(prefix)
    with pytest.raises(IndexError):
        manifest.next_numbers(prefix)


def test_huge_grids_that_are_nearly_empty():
    manifest = Manifest.from_inline(HUGE, {7: b"x", 5 * 10**6 + 3: b"yz"})
    assert list(manifest.indexes()) == [(0, 7), (5, 3)]
    assert manifest.next_numbers().tolist() == [0, 5]
    assert manifest.next_numbers((5,)).tolist() == [3]
    assert list(manifest.indexes((4,))) == []
    assert manifest.chunk((5, 3)) == InlineChunk(b"yz")
    assert manifest.chunk((9, 9)) is None
    assert (manifest.count, manifest.nbytes) == (2, 3)
    packed = pickle.dumps(manifest)
    assert len(packed) < 1000
    assert pickle.loads(packed).equals(manifest)
    assert Manifest.missing(HUGE).is_missing


def test_columns_of_one_value_take_no_memory():
    constant = [np.broadcast_to(kind(value), HUGE) for kind, value in ((np.uint32, 0), (np.uint64, 8), (np.uint64, 4))]
    manifest = Manifest(("a",), *constant)
    assert manifest.chunk((10**6 - 1, 0)) == VirtualChunk("a", ByteRange(8, 4))
    assert not manifest.is_missing
    assert len(pickle.dumps(manifest)) < 1000
    again = pickle.loads(pickle.dumps(manifest))
    assert again.chunk((0, 0)) == manifest.chunk((0, 0))


def test_scalars():
    manifest = Manifest.from_chunks((), {(): VirtualChunk("a", ByteRange(1, 2))})
    assert list(manifest.indexes()) == [()]
    assert not manifest.is_missing
    assert Manifest.missing(()).is_missing


def test_the_repr_is_short_and_names_no_url():
    text = repr(
        Manifest.from_chunks(
            (3,), {(0,): VirtualChunk("https://u:secret@h/f", ByteRange(0, 1)), (1,): InlineChunk(b"x" * 999)}
        )
    )
    assert text == "Manifest(grid_shape=(3,), 1 urls, 1 inline chunks)"


def test_blocks_leave_out_what_is_missing_and_keep_the_rest():
    chunks = {
        (0, 1): VirtualChunk("a", ByteRange(1, 2)),
        (2, 0): InlineChunk(b"x"),
        (2, 1): VirtualChunk("b", ByteRange(3, 4)),
    }
    manifest = Manifest.from_chunks((3, 2), chunks)
    found = {start + i: block.chunk((i,)) for start, block in manifest.blocks(2) for i in range(block.size)}
    assert found == {0: None, 1: chunks[0, 1], 4: chunks[2, 0], 5: chunks[2, 1]}
    assert [start for start, _ in Manifest.missing((10**9, 10**9)).blocks(2**16)] == []
    assert [block.size for _, block in manifest.blocks(4)] == [4, 2]


def test_take_gives_chunks_in_the_order_asked_for():
    chunks = {(0, 1): VirtualChunk("a", ByteRange(1, 2)), (2, 0): InlineChunk(b"x")}
    taken = Manifest.from_chunks((3, 2), chunks).take(np.array([4, 1, 0]))
    assert [taken.chunk((i,)) for i in range(3)] == [None, chunks[0, 1], None]
