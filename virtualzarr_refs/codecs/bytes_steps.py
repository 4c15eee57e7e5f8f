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

from virtualzarr_refs.errors import DecodeError

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
_lz4: Any = numcodecs.LZ4()
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


def _gunzip(data: Data, size: int) -> Data:
    return _bounded(data, size, lambda: zlib.decompressobj(wbits=31))


def _unbz2(data: Data, size: int) -> Data:
    import bz2  # noqa: PLC0415  some builds of Python have none, nor of lzma

    return _bounded(data, size, bz2.BZ2Decompressor)


def _unxz(data: Data, size: int) -> Data:
    import lzma  # noqa: PLC0415

    return _bounded(data, size, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ))


def _bounded(data: Data, size: int, begin: Callable[[], Any]) -> Data:
    """All streams that follow each other in the data, up to one byte more than is expected."""
    parts: list[bytes] = []
    room, rest = size + 1, bytes(data)
    while rest and room:
        stream = begin()
        parts.append(stream.decompress(rest, room))
        room -= len(parts[-1])
        if room and not stream.eof:
            raise ValueError("a chunk was cut short")
        rest = stream.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unblosc(data: Data, size: int) -> Data:
    _require(declared_blosc(data), size)
    return _blosc.decode(data)


def _unlz4(data: Data, size: int) -> Data:
    _require(declared_lz4(data), size)
    return _lz4.decode(data)


def _unzstd(data: Data, size: int) -> Data:
    declared = declared_zstd(data)
    if declared is None:  # it would be decoded to whatever it holds
        target = bytearray(size)
        return _zstd.decode(data, target)
    _require(declared, size)
    return _zstd.decode(data)


def _require(declared: int | None, size: int) -> None:
    if declared != size:
        raise DecodeError(f"a chunk says that it decodes to {declared} bytes instead of {size}")


def declared_blosc(data: Data) -> int | None:
    """The decoded length that a frame of blosc says, in bytes (c-blosc, README_HEADER)."""
    return int.from_bytes(data[4:8], "little") if len(data) >= 8 else None


def declared_lz4(data: Data) -> int | None:
    """The decoded length that stands before a block of LZ4, in bytes."""
    return int.from_bytes(data[:4], "little") if len(data) >= 4 else None


def declared_zstd(data: Data) -> int | None:
    """The decoded length that a frame of zstd says, in bytes; None if it says none (RFC 8878, 3.1.1.1)."""
    if len(data) < 5 or bytes(data[:4]) != b"\x28\xb5\x2f\xfd":
        return None
    descriptor = data[4]
    flag, is_single = descriptor >> 6, descriptor >> 5 & 1
    width = (is_single, 2, 4, 8)[flag]
    start = 5 + (not is_single) + (0, 1, 2, 4)[descriptor & 3]
    if not width or len(data) < start + width:
        return None
    return int.from_bytes(data[start : start + width], "little") + (256 if width == 2 else 0)


_PLAIN: Mapping[str, BytesStep] = {
    "blosc": BytesStep(_unblosc),
    "bz2": BytesStep(_unbz2),
    "fletcher32": BytesStep(_without_checksum, growth=4),
    "gzip": BytesStep(_gunzip),
    "lz4": BytesStep(_unlz4),
    "lzma": BytesStep(_unxz),
    "zlib": BytesStep(_inflate),
    "zstd": BytesStep(_unzstd),
}
_OF_ZARR = frozenset({"blosc", "gzip", "zstd"})
_XZ = 1


def step_of(codec: Mapping[str, Any]) -> BytesStep | None:
    """The step that undoes a codec of ``zarr.json``, or None if it is not known here."""
    name = str(codec["name"])
    bare = name.removeprefix("numcodecs.")
    if bare == name and name not in _OF_ZARR:
        return None
    configuration: Mapping[str, Any] = codec.get("configuration") or {}
    if bare == "lzma" and configuration.get("format", _XZ) != _XZ:
        return None
    return _PLAIN.get(bare)
