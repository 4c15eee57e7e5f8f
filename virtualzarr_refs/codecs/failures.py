"""How other libraries' codecs say that they cannot decode."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress

_lzma_failures: tuple[type[Exception], ...] = ()
with suppress(ImportError):  # some builds of Python have no lzma, and then numcodecs has none either
    from lzma import LZMAError

    _lzma_failures = (LZMAError,)

FAILURES: tuple[type[Exception], ...] = (
    ArithmeticError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
    *_lzma_failures,
)
"""What zarr, numcodecs and kerchunk raise; errors of ours are among them."""
