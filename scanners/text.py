"""Bytes that should be text."""

from __future__ import annotations


def decode_text(raw: bytes | str) -> str:
    """Decode the bytes of a string or name in a file.

    Formats ask for ASCII or UTF-8, but either may hold Latin-1 in the wild; bytes that are no UTF-8 are read as that.
    """
    if isinstance(raw, str):
        # h5py hands over what is no UTF-8 as lone surrogates.
        raw = raw.encode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
