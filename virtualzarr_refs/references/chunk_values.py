"""The values of chunk keys in a reference set.

``[url]`` is a whole source, ``[url, offset, length]`` a part of one; a text is the bytes themselves, in base64 if it
begins so. Where the chunks of an array are encoded in different ways (the codec ``virtualzarr_refs.mixed``) a
reference has the number of the variant as its fourth element, and a chunk that is written out begins with that number.

Where byte ranges of a file make up a shard (the codec ``sharding_indexed``), the fourth element is a text: pairs of
offset and length in the file, one for each inner chunk, as the index of a shard has them; in base64.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkKeyEncoding
from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.references.chunk_keys import encode_keys
from virtualzarr_refs.sources.redaction import redact

BASE64 = "base64:"
"""What a text begins with that is base64."""

PREFIX_LENGTH = 2
"""Bytes of the number of a variant; see the codec ``virtualzarr_refs.mixed``."""

type Reference = Sequence[str | int]
"""The url, two numbers, and a number or a text; see the module."""
type Value = str | Reference


def decode_inline(value: object, key: str) -> bytes:
    """The bytes of a value that is written out in a set.

    Raises
    ------
    ReferenceSetError
        If it is neither a text nor bytes, or no base64 although it says so.
    """
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise malformed(key, value)
    try:
        if value.startswith(BASE64):
            return base64.b64decode(value[len(BASE64) :], validate=True)
        return value.encode()
    except ValueError as error:
        raise ReferenceSetError(f"the value of {key!r} cannot be decoded: {error}") from error


def write_references(manifest: Manifest, encoding: ChunkKeyEncoding, prefix: str) -> Iterator[tuple[str, Value]]:
    """Keys and values of the chunks of one array, virtual ones first.

    Parameters
    ----------
    manifest : Manifest
        The chunks.
    encoding : ChunkKeyEncoding
        How they are named.
    prefix : str
        Put in front of each key.
    """
    positions = manifest.virtual_positions()
    if positions.size:
        yield from zip(
            encode_keys(positions, manifest.grid_shape, encoding, prefix), _rows(manifest, positions), strict=True
        )
    inline = np.fromiter(manifest.inline, np.intp, len(manifest.inline))
    values = map(encode_inline, _stored_values(manifest))
    yield from zip(encode_keys(inline, manifest.grid_shape, encoding, prefix), values, strict=True)


def encode_inline(data: bytes) -> str:
    """Bytes as a text that a set can hold."""
    return BASE64 + base64.b64encode(data).decode()


def _rows(manifest: Manifest, positions: NDArray[np.intp]) -> Iterable[Reference]:
    ids, offset, length = (
        column.reshape(-1)[positions] for column in (manifest.url_id, manifest.offset, manifest.length)
    )
    columns: list[list[Any]] = [np.array(manifest.urls, object)[ids].tolist(), offset.tolist(), length.tolist()]
    if manifest.variant is not None:
        columns.append(manifest.variant.reshape(-1)[positions].tolist())
    rows = zip(*columns, strict=True)
    return _shard_rows(manifest, positions, rows) if manifest.inner_chunks else rows


def _shard_rows(
    manifest: Manifest, positions: NDArray[np.intp], rows: Iterable[tuple[str | int, ...]]
) -> Iterator[Reference]:
    for position, row in zip(positions.tolist(), rows, strict=True):
        inner = manifest.inner_chunks.get(position)
        yield row if inner is None else (*row, encode_inline(inner.to_bytes()))


def _stored_values(manifest: Manifest) -> Iterator[bytes]:
    """The chunks that are written out, each after the number of its variant, if there are variants."""
    if manifest.variant is None:
        yield from manifest.inline.values()
        return
    variant = manifest.variant.reshape(-1)
    for position, data in manifest.inline.items():
        yield int(variant[position]).to_bytes(PREFIX_LENGTH, "little") + data


def malformed(key: str, value: object) -> ReferenceSetError:
    """The error for a value that stands for no chunk."""
    return ReferenceSetError(
        f"the value of {key!r} is neither bytes nor a reference [url, offset, length]: {redact(f'{value!r:.200}')}"
    )
