"""Bytes with a given CRC-32C."""

from __future__ import annotations

from typing import Any, cast

_BITS = 32


def patch(before: bytes, after: bytes, wanted: int) -> bytes:
    """Four bytes that give ``before + four bytes + after`` the CRC-32C `wanted`.

    A cyclic redundancy check is linear: each bit of the four bytes flips the same bits of the sum, whatever the others
    are. So 32 equations say which bits to set, and they always have a solution.
    """
    start = _extend(0, before)

    def summed(number: int) -> int:
        return _extend(_extend(start, number.to_bytes(4, "little")), after)

    at_zero = summed(0)
    rows = [(summed(1 << bit) ^ at_zero, 1 << bit) for bit in range(_BITS)]
    return _solve(rows, wanted ^ at_zero).to_bytes(4, "little")


def _solve(rows: list[tuple[int, int]], wanted: int) -> int:
    """Which of the rows' second members add up (without carry) where their first members add up to `wanted`."""
    pivots: dict[int, tuple[int, int]] = {}
    for row in rows:
        flips, bits = _reduce(row, pivots)
        pivots[flips.bit_length()] = (flips, bits)
    return _reduce((wanted, 0), pivots)[1]


def _reduce(row: tuple[int, int], pivots: dict[int, tuple[int, int]]) -> tuple[int, int]:
    flips, bits = row
    while flips and (pivot := pivots.get(flips.bit_length())):
        flips, bits = flips ^ pivot[0], bits ^ pivot[1]
    return flips, bits


def _extend(crc: int, data: bytes) -> int:
    import google_crc32c  # noqa: PLC0415  only needed here

    return cast("Any", google_crc32c).extend(crc, data)
