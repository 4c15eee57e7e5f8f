"""The codec ``virtualzarr_refs.hdf5``: libhdf5 itself decodes a chunk.

It is right for every filter and every type conversion that libhdf5 knows, and takes about 100 µs a chunk; what other
libraries decode well does not use it.

.. code-block:: json

    {"name": "virtualzarr_refs.hdf5", "configuration": {
        "datatype": "AwATAQAABgAAAA==",
        "filters": [{"id": 32004, "flags": 0, "values": [0]}]}}

``datatype`` is the type as HDF5 encodes it (``H5Tencode``), in base64; ``filters`` are those that were applied to
the chunk, in the order they were, with the parameters that the file has.
"""

from __future__ import annotations

import base64
import math
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import ArrayBytesCodec
from zarr.core.common import JSON

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.codecs.decoding_only import DecodingOnly
from virtualzarr_refs.codecs.hdf5_filters import FLETCHER32, HDF5Filter, check_available
from virtualzarr_refs.codecs.hdf5_image import DATASET_NAME, chunk_image
from virtualzarr_refs.data_types import split_axes
from virtualzarr_refs.errors import DecodeError, ReferenceSetError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

NAME = "virtualzarr_refs.hdf5"

_ENCODE_HEADER = 2
"""Bytes that ``H5Tencode`` puts before the datatype message."""

_MAX_FILTERS = 32
"""Of a pipeline; the filter mask has no room for more."""

_CHECKSUM = 4
"""Bytes that the filter fletcher32 adds."""


@dataclass(frozen=True)
class HDF5Codec(DecodingOnly, ArrayBytesCodec):
    """Decodes a chunk with libhdf5.

    Parameters
    ----------
    datatype : bytes
        The stored type as ``H5Tencode`` gives it.
    filters : tuple of HDF5Filter
        In the order they were applied.
    """

    codec_name = NAME

    datatype: bytes
    filters: tuple[HDF5Filter, ...] = ()

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        """Read the codec's member of ``zarr.json``.

        Raises
        ------
        ReferenceSetError
            If the configuration is malformed.
        """
        try:
            configuration = cast("dict[str, Any]", data["configuration"])
            steps = tuple(HDF5Filter(s["id"], s["flags"], tuple(s["values"])) for s in configuration["filters"])
            if len(steps) > _MAX_FILTERS:
                raise ValueError(f"it has {len(steps)} filters")  # noqa: TRY301  one place says what is wrong
            return cls(base64.b64decode(configuration["datatype"], validate=True), steps)
        except (KeyError, TypeError, ValueError) as error:
            raise ReferenceSetError(f"the codec {NAME} is misconfigured: {error!r}") from error

    def to_dict(self) -> dict[str, JSON]:
        """The codec's member of ``zarr.json``."""
        filters: list[JSON] = [step.to_json() for step in self.filters]
        datatype = base64.b64encode(self.datatype).decode()
        return {"name": NAME, "configuration": {"datatype": datatype, "filters": filters}}

    @cached_property
    def _type(self) -> _StoredType:
        from h5py import h5t  # noqa: PLC0415  the core does without h5py until a file needs it

        try:
            return _StoredType.of(h5t.decode(self.datatype))
        except (RuntimeError, TypeError, ValueError) as error:
            raise DecodeError(f"the HDF5 type of the codec {NAME} cannot be read: {error}") from error

    def decode_chunk(self, data: bytes | memoryview, shape: Shape) -> NDArray[Any]:
        """Decode one chunk.

        Parameters
        ----------
        data : bytes-like
            The chunk as stored.
        shape : tuple of int
            Of the decoded chunk, in elements; an array type's axes come last.

        Returns
        -------
        ndarray
            In the type that h5py gives.

        Raises
        ------
        DecodeError
            If the bytes do not decode to that shape.
        UnsupportedError
            If a filter is not installed.
        """
        type_ = self._type
        inner = shape[: len(shape) - len(type_.axes)]
        try:
            stored = self._unfiltered(data, inner) if self.filters else np.frombuffer(data, np.uint8)
            return type_.convert(stored, math.prod(inner)).reshape(shape)
        except (OSError, RuntimeError, KeyError, TypeError, ValueError, struct.error) as error:
            check_available(self.filters)
            raise DecodeError(f"libhdf5 cannot decode a chunk of shape {shape}: {error}") from error

    def _unfiltered(self, data: bytes | memoryview, shape: Shape) -> NDArray[np.uint8]:
        """The elements of a chunk, of `shape` without an array type's axes, as they were before the first filter."""
        from h5py import h5d, h5f, h5s  # noqa: PLC0415

        check_available(self.filters)
        if self.filters[-1].id == FLETCHER32 and len(data) <= _CHECKSUM:
            raise ValueError("a chunk is too short for a checksum")  # libhdf5 would crash
        image = chunk_image(data, shape, self.datatype[_ENCODE_HEADER:], self._type.size, self.filters)
        file = h5f.open_file_image(image)
        try:
            dataset = h5d.open(file, DATASET_NAME)
            elements = np.empty(shape, f"V{self._type.size}")
            dataset.read(h5s.ALL, h5s.ALL, elements, dataset.get_type())
        finally:
            file.close()
        return elements.reshape(-1).view(np.uint8)

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        data = memoryview(np.ascontiguousarray(chunk_bytes.as_numpy_array()))
        values = self.decode_chunk(data, chunk_spec.shape)
        dtype = chunk_spec.dtype.to_native_dtype()
        return chunk_spec.prototype.nd_buffer.from_numpy_array(_as_type(values, dtype))


@dataclass(frozen=True, slots=True)
class _StoredType:
    """A stored type, and what it is converted to.

    Converting sorts the members of the HDF5 types by offset, so whatever else there is to know is kept beside them.
    """

    source: Any
    target: Any
    size: int
    element: np.dtype[Any]
    axes: Shape

    @classmethod
    def of(cls, source: Any) -> Self:  # noqa: ANN401  h5py.h5t.TypeID
        from h5py import h5t  # noqa: PLC0415

        dtype = cast("np.dtype[Any]", source.dtype)
        if dtype.hasobject:
            raise TypeError("its values lie outside of the chunk")
        # libhdf5 converts opaque values to nothing else, not even to untagged ones of the same size.
        is_opaque = source.get_class() == h5t.OPAQUE and dtype.kind == "V"
        return cls(source, source if is_opaque else h5t.py_create(dtype), source.get_size(), *split_axes(dtype))

    def convert(self, stored: NDArray[np.uint8], count: int) -> NDArray[Any]:
        """The elements in the type that h5py gives."""
        from h5py import h5t  # noqa: PLC0415

        if len(stored) != count * self.size:
            raise ValueError(f"{len(stored)} bytes are not {count} elements of {self.size} bytes")
        # Conversion happens in place, so the buffer holds whichever form of an element is larger.
        converted = count * self.target.get_size()
        buffer = np.zeros(max(len(stored), converted), np.uint8)
        buffer[: len(stored)] = stored
        h5t.convert(self.source, self.target, count, buffer, np.zeros(converted, np.uint8))
        return buffer[:converted].view(self.element)


def _as_type(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Drop padding and byte order; the types agree in everything else."""
    try:
        return np.ascontiguousarray(values.astype(dtype, casting="equiv", copy=False))
    except TypeError as error:
        raise DecodeError(f"a chunk decodes to {values.dtype} instead of {dtype}") from error
