"""Comparing values bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray


def same_type(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether two types hold the same values, whatever their byte order and padding."""
    if one.names is not None or other.names is not None:
        return one.names == other.names and all(same_type(one[name], other[name]) for name in one.names or ())
    if one.subdtype is not None and other.subdtype is not None:
        return one.shape == other.shape and same_type(one.base, other.base)
    return one.newbyteorder("=") == other.newbyteorder("=")


def equal_elements(found: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    """Which elements are equal, bit for bit.

    Parameters
    ----------
    found, expected : ndarray
        Of one shape and of types that are the same but for byte order and padding. NaN equal each other if all
        their bits do; zeros of different sign differ.

    Returns
    -------
    ndarray of bool
        Of the same shape.

    Raises
    ------
    ValueError
        If the shapes differ.
    """
    if found.shape != expected.shape:
        raise ValueError(f"values of shape {found.shape} are no match for {expected.shape}")
    if found.dtype.names is not None:
        return _equal_records(found, expected)
    if found.dtype.hasobject:
        return np.asarray(np.equal(found, expected, dtype=object)).astype(bool)
    equal = _words(found) == _words(expected)
    return equal[..., 0] if equal.shape[-1] == 1 else equal.all(axis=-1)


def shown(found: Any, expected: Any) -> tuple[str, str]:  # noqa: ANN401  two elements of an array
    """Two elements as text, told apart also where they print alike."""
    texts = _text(found), _text(expected)
    if texts[0] != texts[1]:
        return texts
    return f"{texts[0]} (0x{_bytes(found).hex()})", f"{texts[1]} (0x{_bytes(expected).hex()})"


def _equal_records(found: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    equal = np.ones(found.shape, np.bool_)
    for name in cast("tuple[str, ...]", found.dtype.names):
        member = equal_elements(found[name], expected[name])
        equal &= member.reshape(*found.shape, -1).all(axis=-1)  # a member may be an array itself
    return equal


def _words(values: NDArray[Any]) -> NDArray[Any]:
    """The bytes of every element along one more axis, in native order, as few and large integers as there can be."""
    native = values.astype(values.dtype.newbyteorder("="), order="C", copy=False)
    size = native.dtype.itemsize
    word = next((word for width, word in _WORDS.items() if size % width == 0), np.uint8)
    flat = np.frombuffer(native, word) if native.size and size else np.empty(0, word)
    return flat.reshape(*native.shape, size // np.dtype(word).itemsize)


_WORDS: Mapping[int, type[np.unsignedinteger[Any]]] = {8: np.uint64, 4: np.uint32, 2: np.uint16, 1: np.uint8}


def _text(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bytes):
        return repr(bytes(value))
    return repr(str(value)) if isinstance(value, str) else str(value)


def _bytes(value: Any) -> bytes:  # noqa: ANN401
    return np.asarray(value).tobytes()
