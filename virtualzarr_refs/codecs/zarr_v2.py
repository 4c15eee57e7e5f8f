"""The codec ``virtualzarr_refs.zarr_v2``: a chunk of a Zarr v2 array, decoded as Zarr v2 does.

For what has no form as a Zarr v3 pipeline: codecs that only numcodecs and kerchunk have (FITS tables, GRIB messages,
members of records, members of zip archives), filters in an order that Zarr v3 does not know, fields of two byte
orders.

.. code-block:: json

    {"name": "virtualzarr_refs.zarr_v2", "configuration": {
        "dtype": ">f4", "order": "C", "codecs": [{"id": "record_member", "member": "a", "dtype": [["a", ">f4"]]}]}}

``dtype`` and ``order`` are those of the ``.zarray``; ``codecs`` are its filters and then its compressor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import ArrayBytesCodec

from virtualzarr_refs.chunk_grid import JSON, Shape
from virtualzarr_refs.codecs.decoding_only import DecodingOnly
from virtualzarr_refs.codecs.failures import FAILURES
from virtualzarr_refs.errors import DecodeError, ReferenceSetError, UnsupportedError

if TYPE_CHECKING:
    from zarr.core import common
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

NAME = "virtualzarr_refs.zarr_v2"

_FORBIDDEN = {
    "pickle": "this codec runs what it reads, and is never used",
    **dict.fromkeys(
        "categorize json2 msgpack2 vlen-array vlen-bytes vlen-utf8".split(),
        "this codec gives objects, of which only strings are read, and those without other codecs before them",
    ),
}


@dataclass(frozen=True)
class ZarrV2Codec(DecodingOnly, ArrayBytesCodec):
    """Decodes a chunk with codecs of numcodecs.

    Parameters
    ----------
    dtype : numpy.dtype
        The stored type.
    order : {"C", "F"}
        Whether the last or the first axis varies fastest.
    codecs : tuple of mapping
        In the order they were applied, each with its ``id``.

    Raises
    ------
    UnsupportedError
        If a codec is not installed, would run what it reads, or gives objects.
    """

    codec_name = NAME

    dtype: np.dtype[Any]
    order: str
    codecs: tuple[Mapping[str, JSON], ...]

    def __post_init__(self) -> None:
        check_available(tuple(codec.get("id") for codec in self.codecs))

    @classmethod
    def from_dict(cls, data: dict[str, common.JSON]) -> Self:
        """Read the codec's member of ``zarr.json``.

        Raises
        ------
        ReferenceSetError
            If the configuration is malformed.
        UnsupportedError
            If a codec is not installed, would run what it reads, or gives objects.
        """
        try:
            configuration = cast("dict[str, Any]", data["configuration"])
            codecs = tuple(dict(codec) for codec in configuration["codecs"])
            dtype, order = _parse_dtype(configuration["dtype"]), configuration["order"]
        except (KeyError, TypeError, ValueError) as error:
            raise ReferenceSetError(f"the codec {NAME} is misconfigured: {error!r}") from error
        if order not in ("C", "F"):
            raise ReferenceSetError(f"the codec {NAME} does not know the order {order!r}")
        return cls(dtype, order, codecs)

    def to_dict(self) -> dict[str, common.JSON]:
        """The codec's member of ``zarr.json``."""
        dtype: Any = self.dtype.str if self.dtype.names is None else _fields(self.dtype)
        return {
            "name": NAME,
            "configuration": {"dtype": dtype, "order": self.order, "codecs": [dict(codec) for codec in self.codecs]},
        }

    @cached_property
    def _steps(self) -> tuple[Any, ...]:
        from numcodecs import get_codec  # noqa: PLC0415

        try:
            return tuple(
                get_codec({k: _as_tuples(v) if k == "dtype" else v for k, v in c.items()}) for c in self.codecs
            )
        except ImportError as error:
            raise UnsupportedError(f"a codec needs a package that is not installed ({error})", feature=NAME) from error
        except (TypeError, ValueError) as error:
            raise ReferenceSetError(f"the codec {NAME} is misconfigured: {error}") from error

    def decode_chunk(self, data: NDArray[np.uint8], shape: Shape) -> NDArray[Any]:
        """Decode one chunk.

        Parameters
        ----------
        data : ndarray of uint8
            The chunk as stored.
        shape : tuple of int
            Of the decoded chunk, in elements.

        Raises
        ------
        DecodeError
            If the bytes do not decode to that shape and type.
        UnsupportedError
            If a codec needs a package that is not installed.
        """
        value: Any = data
        steps = self._steps
        try:
            for step in reversed(steps):
                value = step.decode(value)
        except ImportError as error:
            raise UnsupportedError(f"a codec needs a package that is not installed ({error})", feature=NAME) from error
        except FAILURES as error:
            raise DecodeError(f"a chunk of shape {shape} cannot be decoded: {error!r:.200}") from error
        return _shaped(_typed(value, self.dtype), shape, self.order)

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        values = self.decode_chunk(np.ascontiguousarray(chunk_bytes.as_numpy_array()), chunk_spec.shape)
        dtype = chunk_spec.dtype.to_native_dtype()
        return chunk_spec.prototype.nd_buffer.from_numpy_array(np.ascontiguousarray(values.astype(dtype, copy=False)))


def check_available(ids: tuple[object, ...]) -> None:
    """Refuse codecs that cannot be used.

    Raises
    ------
    UnsupportedError
        If one is not installed, would run what it reads, or gives objects.
    """
    from numcodecs import registry  # noqa: PLC0415

    for id_ in ids:
        if isinstance(id_, str) and id_ in _FORBIDDEN:
            raise UnsupportedError(_FORBIDDEN[id_], feature=f"codec {id_}")
        if not isinstance(id_, str) or not (id_ in registry.codec_registry or id_ in registry.entries):
            raise UnsupportedError(
                "no installed package registers this codec with numcodecs; install the one that does",
                feature=f"codec {id_}",
            )


def _typed(value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:  # noqa: ANN401  whatever a codec gives
    values = np.asarray(value) if isinstance(value, np.ndarray) else np.frombuffer(value, np.uint8)
    if values.dtype == np.dtype(object):
        raise DecodeError(f"a chunk decodes to objects instead of {dtype}")
    flat = np.ascontiguousarray(values.reshape(-1, order="A"))
    try:
        return flat if flat.dtype == dtype else flat.view(np.uint8).view(dtype)
    except (TypeError, ValueError) as error:
        raise DecodeError(f"a chunk of {flat.nbytes} bytes does not decode to {dtype}") from error


def _as_tuples(dtype: Any) -> Any:  # noqa: ANN401  parsed JSON
    """The fields of a type as NumPy wants them; JSON has only lists."""
    if not isinstance(dtype, list):
        return dtype
    return [tuple(map(_as_tuples, cast("list[Any]", field))) for field in cast("list[Any]", dtype)]


def _shaped(values: NDArray[Any], shape: Shape, order: str) -> NDArray[Any]:
    if values.size != math.prod(shape):
        raise DecodeError(f"a chunk decodes to {values.size} elements instead of shape {shape}")
    return values.reshape(shape, order=cast("Any", order))


def _parse_dtype(value: Any) -> np.dtype[Any]:  # noqa: ANN401  parsed JSON
    if isinstance(value, list):
        fields = cast("list[tuple[str, Any]]", value)
        return np.dtype([(name, _parse_dtype(field)) for name, field in fields])
    return np.dtype(cast("str", value))


def _fields(dtype: np.dtype[Any]) -> list[list[Any]]:
    fields = cast("dict[str, tuple[np.dtype[Any], int]]", dtype.fields)
    parts = ((name, fields[name][0]) for name in dtype.names or ())
    return [[name, part.str if part.names is None else _fields(part)] for name, part in parts]
