"""Two folders of one disk, exchanged in one step."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
"""Linux, renameat2(2)."""

_RENAME_SWAP = 2
"""macOS, renamex_np(2)."""


def exchange(one: Path, other: Path) -> None:
    """Give each folder the name of the other.

    Where the system cannot do it in one step, it is done in three, and there is nothing at `other` for a moment.

    Raises
    ------
    OSError
        If it cannot be done.
    """
    if _exchanged(os.fsencode(one), os.fsencode(other)):
        return
    aside = one.with_name(f"{one.name}.old")
    other.rename(aside)
    try:
        one.rename(other)
    except BaseException:
        aside.rename(other)
        raise
    aside.rename(one)


def _exchanged(one: bytes, other: bytes) -> bool:
    """Whether the system has done it in one step."""
    with suppress(OSError, AttributeError):  # no such function in this system's library
        system = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            return system.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE) == 0
        if sys.platform == "darwin":
            return system.renamex_np(one, other, _RENAME_SWAP) == 0
    return False
