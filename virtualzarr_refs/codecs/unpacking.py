"""Packed values, as CF has them: ``scale_factor``, ``add_offset`` and fill values.

CF Conventions 1.12, sections 8.1 "Packed Data" and 2.5.1 "Missing data". xarray itself unpacks, so that values and
types are those that it gives for a single file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray.conventions import decode_cf_variable

from virtualzarr_refs.codecs.names import PACKING


def unpack(values: NDArray[Any], attributes: Mapping[str, Any]) -> NDArray[Any]:
    """Mask and scale values as xarray does.

    Parameters
    ----------
    values : ndarray
        As stored.
    attributes : mapping of str to object
        Those of `PACKING`, with their types; others do not matter.

    Returns
    -------
    ndarray
        Of the type that xarray chooses, with NaN for missing values.

    Raises
    ------
    ValueError, TypeError
        If the attributes do not fit the values.
    """
    packing = {name: attributes[name] for name in PACKING if name in attributes}
    if not packing:
        return values
    dimensions = [f"axis {axis}" for axis in range(values.ndim)]
    variable = xr.Variable(dimensions, values, packing)
    decoded = decode_cf_variable("", variable, concat_characters=False, decode_times=False)
    return np.asarray(decoded.to_numpy())


def unpacked_type(dtype: np.dtype[Any], attributes: Mapping[str, Any]) -> np.dtype[Any]:
    """The type that `unpack` gives for values of `dtype`."""
    return unpack(np.zeros(1, dtype), attributes).dtype if dtype.kind != "O" else dtype
