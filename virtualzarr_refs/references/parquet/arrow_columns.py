"""NumPy's arrays as columns of Arrow's, and back, without a copy where there can be.

pyarrow's own conversions import pandas, which takes longer than most sets take to read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

type Column = Any
"""An array of pyarrow's, which has no types."""


def to_arrow(values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> Column:
    """A column of numbers.

    Parameters
    ----------
    values : ndarray
        Of a type of integers.
    valid : ndarray of bool, optional
        Where there is a value at all.
    """
    bitmap = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bitmap, data])


def to_numpy(column: Column) -> NDArray[Any]:
    """The numbers of a column; what is there for null is undefined."""
    dtype = column.type.to_pandas_dtype()
    data = column.buffers()[1]
    if not len(column) or data is None:
        return np.zeros(len(column), dtype)
    return np.frombuffer(data, dtype)[column.offset : column.offset + len(column)]


def valid_values(column: Column) -> NDArray[np.bool_]:
    """Where a column has a value."""
    bitmap = column.buffers()[0]
    if bitmap is None:
        return np.full(len(column), column.null_count == 0)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].astype(np.bool_)


def single(column: Column) -> Column:
    """A column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
