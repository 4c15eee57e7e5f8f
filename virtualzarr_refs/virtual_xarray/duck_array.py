"""An array of references that xarray takes for an array of values."""

# ruff: noqa: ANN401  whatever NumPy takes

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast, override

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.codecs.unpacking import unpacked_type
from virtualzarr_refs.combine.values import decoded, read_arrays
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray
from virtualzarr_refs.virtual_xarray.indexing import index

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""NumPy's functions that work on references, and what does their work; see `operations`."""

_COMPARING = (np.equal, np.not_equal, np.isnan, np.isnat)
"""What xarray asks of values to find out whether two variables are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class DuckArray(NDArrayOperatorsMixin):
    """References that look like the values which they stand for, unpacked.

    Parts, joined parts and new first axes are references again. Comparing reads the values; whatever would compute
    others from them is refused.

    Parameters
    ----------
    array : VirtualArray
        The references. CF's attributes of packing say what stored values stand for; names of dimensions do not count.
    dtype : numpy.dtype
        Of the values.
    storage_options : mapping, optional
        For reading values.
    """

    array: VirtualArray
    dtype: np.dtype[Any]
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  as NumPy's arrays, which compare by element

    @classmethod
    def of(cls, array: VirtualArray, storage_options: Mapping[str, object] | None = None) -> Self:
        """References whose values have the type that xarray gives them."""
        return cls(array, shown_type(array), storage_options)

    @property
    def shape(self) -> Shape:
        """Shape of the array, in elements."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return self.size * self.dtype.itemsize

    @property
    def file(self) -> str:
        """What to call the array in messages: where its first chunk lies."""
        return next(iter(self.array.manifest.urls), "values in memory")

    def astype(self, dtype: Any, copy: bool = True) -> DuckArray:  # noqa: ARG002  as NumPy has it
        """The array, as of a type that holds all of its values; references are only cast when they are joined.

        Raises
        ------
        UnsupportedError
            If the type does not hold them.
        """
        wanted = np.dtype(dtype)
        if not np.can_cast(self.dtype, wanted, "safe"):
            raise UnsupportedError(
                f"references cannot be cast from {self.dtype} to {wanted}; cast values once they are read"
            )
        return replace(self, dtype=wanted)

    def transpose(self, *axes: Any) -> DuckArray:
        """The array itself, if the order of its axes stays.

        Raises
        ------
        UnsupportedError
            If it does not.
        """
        order = tuple(axes[0]) if len(axes) == 1 and not isinstance(axes[0], int) else axes
        if tuple(axis % self.ndim for axis in order) != tuple(range(self.ndim)):
            raise UnsupportedError("the axes of references cannot change places; transpose values once they are read")
        return self

    def __getitem__(self, key: Any) -> DuckArray:
        return replace(self, array=index(self.array, key, self.storage_options))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        (stored,) = read_arrays([self.array], self.storage_options)
        values = stored if stored.dtype.kind == "V" else decoded(self.array, stored).astype(self.dtype, copy=False)
        return values if dtype is None else values.astype(dtype, copy=bool(copy))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc not in _COMPARING or method != "__call__":
            raise _refusal(ufunc.__name__)
        return ufunc(*(np.asarray(i) if isinstance(i, DuckArray) else i for i in inputs), **options)

    def __array_function__(self, function: Any, _: Any, arguments: Any, options: Any) -> Any:
        if function not in FUNCTIONS:
            raise _refusal(function.__name__)
        return FUNCTIONS[function](*arguments, **options)

    def __copy__(self) -> DuckArray:
        return self

    def __deepcopy__(self, _: object) -> DuckArray:
        return self

    @override
    def __repr__(self) -> str:
        return f"DuckArray({self.dtype} {self.shape}, {self.array.manifest})"

    def _repr_inline_(self, max_width: int) -> str:
        return f"references to {self.array.manifest.size} chunks"[:max_width]


def shown_type(array: VirtualArray) -> np.dtype[Any]:
    """The type that xarray gives to the values of an array; records and raw bytes are never unpacked."""
    return array.dtype if array.dtype.kind == "V" else unpacked_type(array.dtype, array.metadata.typed_attributes())


def _refusal(name: str) -> UnsupportedError:
    return UnsupportedError(
        "references are no values to compute with; turn the dataset into a group by from_xarray, and open that",
        feature=f"numpy.{name}",
    )


def implements(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say that a function does the work of one of NumPy's."""

    def register(own: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS[function] = own
        return own

    return cast("Any", register)
