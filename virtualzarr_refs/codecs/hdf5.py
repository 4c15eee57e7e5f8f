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
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast, override

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import ArrayBytesCodec
from zarr.core.common import JSON

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.codecs.hdf5_filters import HDF5Filter, check_available
from virtualzarr_refs.codecs.hdf5_image import DATASET_NAME, chunk_image
from virtualzarr_refs.errors import DecodeError, ReferenceSetError, UnsupportedError

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

NAME = "virtualzarr_refs.hdf5"

_ENCODE_HEADER = 2
"""Bytes that ``H5Tencode`` puts before the datatype message."""


@dataclass(frozen=True)
class HDF5Codec(ArrayBytesCodec):
    """Decodes a chunk with libhdf5.

    Parameters
    ----------
    datatype : bytes
        The stored type as ``H5Tencode`` gives it.
    filters : tuple of HDF5Filter
        In the order they were applied.
    """

    is_fixed_size = False

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
            steps = (HDF5Filter(s["id"], s["flags"], tuple(s["values"])) for s in configuration["filters"])
            return cls(base64.b64decode(configuration["datatype"], validate=True), tuple(steps))
        except (KeyError, TypeError, ValueError) as error:
            raise ReferenceSetError(f"the codec {NAME} is misconfigured: {error!r}") from error

    def to_dict(self) -> dict[str, JSON]:
        """The codec's member of ``zarr.json``."""
        filters: list[JSON] = [step.to_json() for step in self.filters]
        datatype = base64.b64encode(self.datatype).decode()
        return {"name": NAME, "configuration": {"datatype": datatype, "filters": filters}}

    @cached_property
    def type_id(self) -> Any:  # noqa: ANN401  h5py.h5t.TypeID
        """The stored type, as h5py has it."""
        from h5py import h5t  # noqa: PLC0415  the core does without h5py until a file needs it

        try:
            return h5t.decode(self.datatype)
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
        decode = _read_image if self.filters else _convert
        try:
            values = decode(data, shape, self)
        except (OSError, RuntimeError, KeyError, ValueError) as error:
            check_available(self.filters)
            raise DecodeError(f"libhdf5 cannot decode a chunk of shape {shape}: {error}") from error
        if values.shape != shape:
            raise DecodeError(f"a chunk decodes to shape {values.shape} instead of {shape}")
        return values

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        data = memoryview(np.ascontiguousarray(chunk_bytes.as_numpy_array()))
        values = self.decode_chunk(data, chunk_spec.shape)
        dtype = chunk_spec.dtype.to_native_dtype()
        return chunk_spec.prototype.nd_buffer.from_numpy_array(_as_type(values, dtype))

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return self._decode_sync(chunk_data, chunk_spec)

    @override
    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        raise UnsupportedError("existing files are read only", feature=f"codec {NAME}")

    @override
    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Not known beforehand."""
        raise UnsupportedError("the size of a stored chunk is not known", feature=f"codec {NAME}")


def _read_image(data: bytes | memoryview, shape: Shape, codec: HDF5Codec) -> NDArray[Any]:
    from h5py import Dataset, h5d, h5f  # noqa: PLC0415

    check_available(codec.filters)
    type_ = codec.type_id
    rank = len(shape) - len(array_axes(type_))
    message = codec.datatype[_ENCODE_HEADER:]
    image = chunk_image(data, shape[:rank], message, type_.get_size(), codec.filters)
    file = h5f.open_file_image(image)
    try:
        return Dataset(h5d.open(file, DATASET_NAME))[()]
    finally:
        file.close()


def _convert(data: bytes | memoryview, shape: Shape, codec: HDF5Codec) -> NDArray[Any]:
    from h5py import h5t  # noqa: PLC0415

    source = codec.type_id
    axes = array_axes(source)
    count = math.prod(shape[: len(shape) - len(axes)])
    size = source.get_size()
    if len(data) < count * size:
        raise DecodeError(f"{len(data)} bytes are too few for {count} elements of {size} bytes")
    dtype = source.dtype.newbyteorder("=")
    target = h5t.py_create(dtype)
    # Conversion happens in place, so the buffer holds whichever form of an element is larger.
    buffer = np.zeros(count * max(size, target.get_size()), np.uint8)
    buffer[: count * size] = np.frombuffer(data, np.uint8, count * size)
    background = np.zeros(count * target.get_size(), np.uint8)
    h5t.convert(source, target, count, buffer, background)
    base = dtype.subdtype[0] if dtype.subdtype else dtype
    return buffer[: count * target.get_size()].view(base).reshape(shape)


def array_axes(type_: Any) -> Shape:  # noqa: ANN401  h5py.h5t.TypeID
    """The axes that an HDF5 array type adds to a dataset; empty for every other type."""
    dtype = cast("np.dtype[Any]", type_.dtype)
    return dtype.shape


def _as_type(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Drop padding and byte order; the types agree in everything else."""
    return np.ascontiguousarray(values if values.dtype == dtype else values.astype(dtype))
