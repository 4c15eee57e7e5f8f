"""Chunks cut into smaller ones, and put together to larger ones, where byte ranges allow.

For chunks that are nothing but their values in C order. Columns are changed as a whole: nothing is done chunk by chunk
but for inline ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.manifest import MISSING, Manifest, VirtualChunk, index_of


@dataclass(frozen=True, slots=True)
class Pieces:
    """What chunks are cut into along an axis.

    Parameters
    ----------
    owner : ndarray of intp
        For each piece the chunk that it is of.
    start, length : ndarray of int64
        Where in that chunk, in elements.
    """

    owner: NDArray[np.intp]
    start: NDArray[np.int64]
    length: NDArray[np.int64]

    @classmethod
    def between(cls, lengths: NDArray[np.int64], targets: NDArray[np.int64]) -> Self:
        """The pieces that begin wherever a chunk or a target begins; what lies beyond the targets is left out.

        Parameters
        ----------
        lengths, targets : ndarray of int64
            Of the chunks and of what is to become of them, in elements.
        """
        ends, wanted = np.cumsum(lengths), np.cumsum(targets)
        stops = _merged(ends[ends < wanted[-1]], wanted)
        starts = np.concatenate(([0], stops[:-1]))
        owner = np.searchsorted(ends, starts, "right")
        return cls(owner, starts - (ends - lengths)[owner], stops - starts)


def split(manifest: Manifest, axis: int, pieces: Pieces, step: NDArray[np.int64]) -> Manifest:
    """Cut chunks along an axis.

    Parameters
    ----------
    manifest : Manifest
        Of chunks whose values lie one after the other along the axis.
    axis : int
        Of the grid.
    pieces : Pieces
        What to cut them into.
    step : ndarray of int64
        Bytes of one element along the axis, by chunk: broadcasts against the grid once its chunks are pieces.
    """
    url_id = manifest.url_id.take(pieces.owner, axis)
    size = np.broadcast_to(_along(pieces.length, axis, url_id.ndim) * step, url_id.shape)
    offset = manifest.offset.take(pieces.owner, axis)
    offset += (_along(pieces.start, axis, url_id.ndim) * step).astype(np.uint64)
    is_missing = url_id == MISSING
    variant = None if manifest.variant is None else manifest.variant.take(pieces.owner, axis)
    offset[is_missing] = 0
    length = np.where(is_missing, 0, size).astype(manifest.length.dtype)
    inline = dict(_split_inline(manifest, axis, pieces, step, url_id.shape))
    return Manifest(manifest.urls, url_id, offset, length, variant, inline)


def join(manifest: Manifest, axis: int, starts: NDArray[np.intp]) -> Manifest:
    """Put chunks together along an axis.

    Parameters
    ----------
    manifest : Manifest
        Of chunks whose values follow each other along the axis.
    axis : int
        Of the grid.
    starts : ndarray of intp
        The first chunk of each that is to be, ascending, from 0.

    Raises
    ------
    UnsupportedError
        If chunks that are to be one do not follow each other in one source, nor are all inline or all missing.
    """
    _check_neighbours(manifest, axis, starts)
    url_id, offset = manifest.url_id.take(starts, axis), manifest.offset.take(starts, axis)
    length = np.add.reduceat(manifest.length, starts, axis, np.uint64)
    variant = None if manifest.variant is None else manifest.variant.take(starts, axis)
    is_missing = url_id == MISSING
    offset[is_missing] = length[is_missing] = 0
    inline = _joined_inline(manifest, axis, starts, url_id.shape)
    return Manifest(manifest.urls, url_id, offset, length, variant, inline)


def _merged(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of two ascending arrays, each once; `numpy.union1d` takes ten times as long."""
    both = np.sort(np.concatenate((one, other)), kind="stable")
    return both[np.diff(both, prepend=-1) > 0]


def _along(values: NDArray[np.int64], axis: int, ndim: int) -> NDArray[np.int64]:
    return values.reshape((1,) * axis + (-1,) + (1,) * (ndim - axis - 1))


def _split_inline(
    manifest: Manifest, axis: int, pieces: Pieces, step: NDArray[np.int64], shape: tuple[int, ...]
) -> Iterator[tuple[int, bytes]]:
    if not manifest.inline:
        return
    steps = np.broadcast_to(step, shape)
    firsts = np.searchsorted(pieces.owner, np.arange(manifest.grid_shape[axis] + 1))
    for position, data in manifest.inline.items():
        index = list(index_of(position, manifest.grid_shape))
        for piece in range(firsts[index[axis]], firsts[index[axis] + 1]):
            place = (*index[:axis], piece, *index[axis + 1 :])
            size = int(steps[place])
            start = int(pieces.start[piece]) * size
            yield int(np.ravel_multi_index(place, shape)), data[start : start + int(pieces.length[piece]) * size]


def _joined_inline(manifest: Manifest, axis: int, starts: NDArray[np.intp], shape: tuple[int, ...]) -> dict[int, bytes]:
    joined: defaultdict[int, list[bytes]] = defaultdict(list)
    for position in sorted(manifest.inline):
        index = list(index_of(position, manifest.grid_shape))
        index[axis] = int(np.searchsorted(starts, index[axis], "right")) - 1
        joined[int(np.ravel_multi_index(index, shape))].append(manifest.inline[position])
    return {position: b"".join(parts) for position, parts in joined.items()}


def _check_neighbours(manifest: Manifest, axis: int, starts: NDArray[np.intp]) -> None:
    before: list[Any] = [slice(None)] * manifest.url_id.ndim
    after = list(before)
    before[axis], after[axis] = slice(None, -1), slice(1, None)
    left, right = tuple(before), tuple(after)
    ends = manifest.offset[left] + manifest.length[left]
    follows = (ends == manifest.offset[right]) & (manifest.url_id[left] == manifest.url_id[right])
    is_inline = np.zeros(manifest.size, np.bool_)
    is_inline[list(manifest.inline)] = True
    is_inline = is_inline.reshape(manifest.grid_shape)
    is_elsewhere = (manifest.url_id[left] == MISSING) & (manifest.url_id[right] == MISSING)
    allowed = np.where(is_elsewhere, is_inline[left] == is_inline[right], follows)
    if manifest.variant is not None:
        allowed &= manifest.variant[left] == manifest.variant[right]
    is_inner = np.ones(manifest.grid_shape[axis] - 1, np.bool_)
    is_inner[starts[1:] - 1] = False
    bad = np.flatnonzero(~allowed & _along(is_inner.astype(np.int64), axis, allowed.ndim).astype(np.bool_))
    if bad.size:
        raise _refusal(manifest, axis, index_of(int(bad[0]), allowed.shape))


def _refusal(manifest: Manifest, axis: int, index: tuple[int, ...]) -> UnsupportedError:
    other = (*index[:axis], index[axis] + 1, *index[axis + 1 :])
    one, two = manifest.chunk(index), manifest.chunk(other)
    url = one.url if isinstance(one, VirtualChunk) else None
    if one is None or two is None:
        reason = "one of them is missing"
    elif manifest.variant_of(index) != manifest.variant_of(other):
        reason = "they are encoded in different ways"
    elif not isinstance(one, VirtualChunk) or not isinstance(two, VirtualChunk):
        reason = "one of them is inline"
    elif one.url != two.url:
        reason = f"the second lies in {two.url}"
    else:
        reason = "other bytes lie between them"
    return UnsupportedError(
        f"the chunks {index} and {other} cannot become one, because {reason}; leave the variable out", url=url
    )
