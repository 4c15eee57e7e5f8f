"""Open-Meteo files for tests: written by omfiles, or put together here where it cannot write them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import omfiles

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
CASES = (
    *((dtype, "pfor_delta_2d") for dtype in (*INTEGERS, "f4", "f8")),
    ("f4", "fpx_xor_2d"),
    ("f4", "pfor_delta_2d_int16"),
    ("f4", "pfor_delta_2d_int16_logarithmic"),
)
"""Every pair of type and compression that omfiles both writes and reads back."""

KINDS = ("smooth", "noise", "spikes", "constant", "missing", "wild")


def values(kind: str, shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Values that exercise other parts of the packing, by kind."""
    rng = np.random.default_rng(seed)
    make = _floats if dtype[0] == "f" else _integers
    return make(kind, int(np.prod(shape)), np.dtype(dtype), rng).reshape(shape)


def _floats(kind: str, size: int, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    normal = rng.normal(size=size)
    made = {
        "smooth": np.cumsum(normal),
        "noise": normal * 100,
        "spikes": np.where(rng.random(size) < 0.04, normal * 1000, normal),
        "constant": np.full(size, 3.5),
        "missing": np.where(rng.random(size) < 0.3, np.nan, normal),
        "wild": rng.standard_cauchy(size),
    }
    return made[kind].astype(dtype)


def _integers(kind: str, size: int, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    limits = np.iinfo(dtype)
    low, high = np.array(limits.min, dtype), np.array(limits.max, dtype)
    noise = rng.integers(low, high, size, dtype=dtype, endpoint=True)
    wild = np.clip(rng.standard_cauchy(size) * 10, max(limits.min, -(2**62)), min(limits.max, 2**62))
    made = {
        "smooth": np.cumsum(rng.integers(-3, 4, size)),
        "noise": noise,
        "spikes": np.where(rng.random(size) < 0.05, noise, rng.integers(0, 4, size).astype(dtype)),
        "constant": np.full(size, 7),
        "missing": np.where(rng.random(size) < 0.3, high, low),
        "wild": wild,
    }
    with np.errstate(invalid="ignore"):
        return made[kind].astype(dtype)


def write(path: Path, array: np.ndarray, chunks: Sequence[int], name: str = "", **options: Any) -> Path:
    """Write a file that is one array."""
    writer = omfiles.OmFileWriter.at_path(str(path))
    writer.close(writer.write_array(np.ascontiguousarray(array), chunks=list(chunks), name=name, **options))
    return path


def truth(reader: omfiles.OmFileReader) -> np.ndarray:
    """All values of an array; omfiles leaves out axes of length one."""
    return np.asarray(reader.read_array(...)).reshape(reader.shape)


def arrays(reader: omfiles.OmFileReader, path: str = "") -> Iterator[tuple[str, omfiles.OmFileReader]]:
    """Every array of a file, by path."""
    if reader.is_array:
        yield path or reader.name or "data", reader
    for i in range(reader.num_children):
        child = reader.get_child_by_index(i)
        yield from arrays(child, f"{path}/{child.name}".lstrip("/"))


def old_file(
    version: int, compression: int, scale: float, shape: tuple[int, int], chunks: tuple[int, int], data: Sequence[bytes]
) -> bytes:
    """A file of version 1 or 2, from its chunks."""
    head = struct.pack("<2sBBf4Q", b"OM", version, compression, scale, *shape, *chunks)
    ends = np.cumsum([len(chunk) for chunk in data]).astype("<u8")
    return head + ends.tobytes() + b"".join(data)


# ── Packing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def pack_bits(numbers: Sequence[int], width: int, word: int = 8, lanes: int = 1) -> bytes:
    """Numbers of `width` bits, lowest bit first; with several lanes, a word of each in turn."""
    streams = [sum(n << width * row for row, n in enumerate(numbers[lane::lanes])) for lane in range(lanes)]
    if lanes == 1:
        return streams[0].to_bytes((len(numbers) * width + 7) // 8, "little")
    size = word // 8
    parts = [stream.to_bytes(width * len(numbers) // lanes // 8, "little") for stream in streams]
    return b"".join(part[i : i + size] for i in range(0, len(parts[0]), size) for part in parts)


def pack_block(numbers: Sequence[int], word: int, kind: str, width: int) -> bytes:
    """One block of up to 128 numbers; those that have more bits than `width` become exceptions."""
    if word == 64 and width == 63 and kind in ("plain", "constant"):
        width = 64  # a header has no room for both
    lanes = {16: 8, 32: 4}.get(word, 1) if len(numbers) == 128 else 1
    low = pack_bits([n & (1 << width) - 1 for n in numbers], width, word, lanes)
    high = [(i, n >> width) for i, n in enumerate(numbers) if n >> width]
    coded = 63 if width == 64 else width
    if kind == "plain":
        return bytes([coded]) + low
    if kind == "constant":
        return bytes([0xC0 | coded]) + numbers[0].to_bytes((width + 7) // 8, "little")
    if kind == "bitmap":
        bits = max((n.bit_length() for _, n in high), default=1)
        bitmap = sum(1 << i for i, _ in high).to_bytes((len(numbers) + 7) // 8, "little")
        return bytes([0x80 | width, bits]) + bitmap + pack_bits([n for _, n in high], bits) + low
    listed = b"".join(vbyte(n) for _, n in high)
    if kind == "raw" and high:
        listed = b"\xff" + b"".join(n.to_bytes(word // 8, "little") for _, n in high)
    return bytes([0x40 | width, len(high)]) + low + listed + bytes(i for i, _ in high)


def vbyte(number: int) -> bytes:
    """A number in one byte or more."""
    if number < 177:
        return bytes([number])
    if number < 16561:
        return bytes([177 + (number - 177 >> 8), (number - 177) & 0xFF])
    if number < 16561 + (8 << 16):
        rest = number - 16561
        return bytes([241 + (rest >> 16)]) + (rest & 0xFFFF).to_bytes(2, "little")
    size = max(3, (number.bit_length() + 7) // 8)
    return bytes([246 + size]) + number.to_bytes(size, "little")


def varint(number: int, word: int) -> bytes:
    """The first number of a stream."""
    if word == 8:
        return bytes([number])
    if number < 1 << 7:
        return bytes([number])
    if number < 1 << 14:
        return struct.pack(">H", 0x8000 | number)
    if number < 1 << 21:
        return bytes([0xC0 | number >> 16]) + struct.pack("<H", number & 0xFFFF)
    if number < 1 << 28:
        return struct.pack(">I", 0xE0000000 | number)
    return _long_varint(number)


def _long_varint(number: int) -> bytes:
    low = struct.pack("<I", number & 0xFFFFFFFF)
    high = number >> 32
    if high < 1 << 3:
        return bytes([0xF0 | high]) + low
    if high < 1 << 10:
        return struct.pack(">H", 0xF800 | high) + low
    if high < 1 << 17:
        return bytes([0xFC | high >> 16]) + struct.pack("<H", high & 0xFFFF) + low
    if number < 1 << 56:
        return b"\xfe" + number.to_bytes(7, "big")
    return b"\xff" + struct.pack("<Q", number)


def differences(numbers: Sequence[int], word: int, *, is_signed: bool) -> list[int]:
    """What follows the first of a list of numbers, given without sign."""
    mask = (1 << word) - 1
    steps = [b - a & mask for a, b in pairwise(numbers)]
    return [(s << 1 & mask) ^ (mask if s >> word - 1 else 0) for s in steps] if is_signed else steps


def pack_table(boundaries: Sequence[int]) -> bytes:
    """The lookup table of version 3."""
    blocks = [boundaries[i : i + 64] for i in range(0, len(boundaries), 64)]
    packed = [
        varint(block[0], 64) + (pack_block(steps, 64, "plain", max(steps).bit_length()) if steps else b"")
        for block in blocks
        for steps in [differences(block, 64, is_signed=False)]
    ]
    size = max(map(len, packed))
    return b"".join(block.ljust(size, b"\0") for block in packed)


def array_variable(
    dtype: int, compression: int, table: tuple[int, int], shape: Sequence[int], chunks: Sequence[int]
) -> bytes:
    """A variable of version 3, without name and children; the table by offset and size."""
    head = struct.pack("<BBHIQQQff", dtype, compression, 0, 0, table[1], table[0], len(shape), 1.0, 0.0)
    return head + struct.pack(f"<{2 * len(shape)}Q", *shape, *chunks)


def trailer(offset: int, size: int) -> bytes:
    """The end of a file of version 3."""
    return struct.pack("<3s5xQQ", b"OM\x03", offset, size)
