"""Values in memory as arrays that are kept inline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.combine.values import MAX_READ, inline_values, shown_type
from virtualzarr_refs.errors import NotRepresentableError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray

type Encoded = tuple[dict[str, Any], dict[str, Any]]
"""Attributes as in ``zarr.json``, and their NumPy types."""


def from_memory(
    values: NDArray[Any], attributes: Mapping[str, Any] | None = None, dimensions: tuple[str, ...] | None = None
) -> VirtualArray:
    """An array of one inline chunk.

    Raises
    ------
    UnsupportedError
        If it is too large, or Zarr has no such type.
    NotRepresentableError
        If an attribute cannot be written.
    """
    if values.nbytes > MAX_READ:
        raise UnsupportedError(f"{values.nbytes} bytes in memory are too many to be kept beside references")
    return inline_values(values, encode_checked(attributes or {}, shown_type(values)), dimensions)


def encode_checked(attributes: Mapping[str, Any], dtype: np.dtype[Any] | None = None) -> Encoded:
    """Attributes in the form that ``zarr.json`` has.

    Raises
    ------
    NotRepresentableError
        If JSON cannot say one of them.
    """
    plain, types = encode_attributes(attributes, dtype)
    for name, value in plain.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            raise NotRepresentableError(
                f"the attribute {name!r} cannot be written: {error}; make it text or a number"
            ) from error
    return plain, types
