"""Codecs from bytes to bytes, undone one chunk at a time without zarr's wrapping, and never beyond what is expected.

A step gets the encoded bytes and the number of bytes that they must decode to. It may return another number, which its
caller refuses, but not one that is out of all proportion.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import deflate
import numcodecs

type Data = bytes | bytearray | memoryview
type Decode = Callable[[Data, int], Data]

_SHORT = 64
"""Encoded bytes below which zlib is often faster than libdeflate; it makes at most a thousand times as many of them."""


@dataclass(frozen=True, slots=True)
class BytesStep:
    """One codec from bytes to bytes.

    Parameters
    ----------
    decode : callable
        Undoes it.
    growth : int, optional
        Bytes that encoding adds, if that is always the same.
    """

    decode: Decode
    growth: int | None = None


_blosc: Any = numcodecs.Blosc()
_fletcher32: Any = numcodecs.Fletcher32()
_zstd: Any = numcodecs.Zstd()


def _inflate(data: Data, size: int) -> Data:
    if len(data) <= _SHORT:
        return zlib.decompress(data, bufsize=size or 1)
    try:
        return deflate.zlib_decompress(data, size)
    except deflate.DeflateError:  # zlib has the last word on what is sound, and says what is not
        return zlib.decompressobj().decompress(data, size + 1)


def _without_checksum(data: Data, size: int) -> Data:  # noqa: ARG001
    return _fletcher32.decode(data)


def _unblosc(data: Data, size: int) -> Data:
    # c-blosc, README_HEADER: the decoded length stands at byte 4.
    length = int.from_bytes(data[4:8], "little")
    if length != size:
        raise ValueError(f"a blosc frame holds {length} bytes instead of {size}")
    return _blosc.decode(data)


def _unzstd(data: Data, size: int) -> Data:  # noqa: ARG001
    return _zstd.decode(data)


STEPS: Mapping[str, BytesStep] = {
    "blosc": BytesStep(_unblosc),
    "numcodecs.fletcher32": BytesStep(_without_checksum, growth=4),
    "numcodecs.zlib": BytesStep(_inflate),
    "zstd": BytesStep(_unzstd),
}
"""By name of the codec. Their configurations do not matter to decoding."""
