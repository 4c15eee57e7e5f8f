"""Values of a new dimension, one for each group, as scalar arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.combine.values import inline_values, shown_type
from virtualzarr_refs.hierarchy import VirtualArray

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    type Index = pd.Index | xr.DataArray | xr.Variable


def name_of(dim: Index) -> str:
    """The name of a new dimension.

    Raises
    ------
    ValueError
        If it has none.
    """
    dims = getattr(dim, "dims", ())
    name = dims[0] if len(dims) == 1 else getattr(dim, "name", None)
    if not isinstance(name, str):
        raise ValueError("the new dimension has no name; name the index, or pass a string")  # noqa: TRY004  its value
    return name


def scalars(dim: Index, count: int) -> list[VirtualArray]:
    """The values of a new dimension, each as an array without axes, times encoded as CF has them.

    Raises
    ------
    ValueError
        If there are not `count` values.
    """
    from xarray import Variable  # noqa: PLC0415  slow to import
    from xarray.conventions import encode_cf_variable  # noqa: PLC0415

    values = np.asarray(dim)
    if values.shape != (count,):
        raise ValueError(f"there are {count} groups, and {values.size} values of {name_of(dim)!r}")
    encoded = encode_cf_variable(Variable(name_of(dim), values, getattr(dim, "attrs", {})))
    stored: NDArray[Any] = np.asarray(encoded.values)
    attributes = encode_attributes(encoded.attrs, shown_type(stored))
    return [inline_values(stored[number : number + 1].reshape(()), attributes, ()) for number in range(count)]
