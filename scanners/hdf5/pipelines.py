"""Filter pipelines as Zarr codecs: by a library that decodes them well, or else by libhdf5."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from h5py import h5p

from scanners.hdf5.datatypes import Endian, Storage, ValueType
from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.codecs.hdf5_filters import (
    BLOSC,
    BZIP2,
    DEFLATE,
    FLETCHER32,
    SHUFFLE,
    ZSTD,
    HDF5Filter,
    check_available,
)
from virtualzarr_refs.errors import UnsupportedError

type CodecJSON = dict[str, JSON]
type Pipeline = tuple[CodecJSON, ...]


def read_filters(properties: h5p.PropDCID) -> tuple[HDF5Filter, ...]:
    """The filters of a dataset, in the order they are applied.

    Raises
    ------
    UnsupportedError
        If one has more parameters than h5py has room for: N-bit on compounds of many members.
    """
    try:
        steps = tuple(properties.get_filter(i) for i in range(properties.get_nfilters()))
    except AssertionError as error:
        raise UnsupportedError(f"a filter has more parameters than h5py can tell ({error})") from error
    return tuple(HDF5Filter(int(step[0]), int(step[1]), tuple(int(v) for v in step[2])) for step in steps)


def applied(filters: tuple[HDF5Filter, ...], mask: int) -> tuple[HDF5Filter, ...]:
    """The filters that a chunk went through: bit i of its mask says that filter i was left out."""
    return tuple(step for i, step in enumerate(filters) if not mask >> i & 1)


def build_pipeline(value_type: ValueType, filters: tuple[HDF5Filter, ...]) -> Pipeline:
    """The codecs that undo a datatype and its filters.

    Raises
    ------
    UnsupportedError
        If a filter cannot be undone in this process.
    """
    codecs = [_CODECS[step.id](step) for step in filters if _is_native(step)]
    if value_type.storage is Storage.DIRECT and len(codecs) == len(filters) and _shuffles_first(filters):
        return (bytes_codec(value_type.dtype, value_type.endian), *(codec for codec in codecs if codec is not None))
    check_available(filters)
    return (libhdf5_codec(value_type, filters),)


def bytes_codec(dtype: np.dtype[Any], endian: Endian | None) -> CodecJSON:
    """The core codec ``bytes``; of structured types zarr wants to know the byte order even where there is none."""
    if endian is None and dtype.names is None:
        return {"name": "bytes"}
    return {"name": "bytes", "configuration": {"endian": endian or "little"}}


def libhdf5_codec(value_type: ValueType, filters: tuple[HDF5Filter, ...]) -> CodecJSON:
    """The codec ``virtualzarr_refs.hdf5``."""
    return {
        "name": "virtualzarr_refs.hdf5",
        "configuration": {
            "datatype": base64.b64encode(value_type.encoded).decode(),
            "filters": [step.to_json() for step in filters],
        },
    }


def mixed_codec(pipelines: tuple[Pipeline, ...]) -> CodecJSON:
    """The codec ``virtualzarr_refs.mixed`` over several pipelines."""
    variants: list[JSON] = [{"codecs": list(pipeline)} for pipeline in pipelines]
    return {"name": "virtualzarr_refs.mixed", "configuration": {"variants": variants}}


def _is_native(step: HDF5Filter) -> bool:
    """Whether a library can undo a filter. numcodecs' blosc is built without snappy."""
    return step.id in _CODECS and not (step.id == BLOSC and _value(step, 6, 0) == _SNAPPY)


def _shuffles_first(filters: tuple[HDF5Filter, ...]) -> bool:
    """Shuffling bytes that are no whole number of elements is where libraries differ."""
    return all(step.id != SHUFFLE for step in filters[1:])


def _shuffle(step: HDF5Filter) -> CodecJSON | None:
    size = step.values[0] if step.values else 1
    return {"name": "numcodecs.shuffle", "configuration": {"elementsize": size}} if size > 1 else None


def _value(step: HDF5Filter, position: int, default: int) -> int:
    return step.values[position] if len(step.values) > position else default


_SNAPPY = 3


def _blosc(step: HDF5Filter) -> CodecJSON:
    # Client data: revision, version, type size, chunk size, level, shuffle, compressor. Decoding needs none of it.
    names = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
    shuffles = ("noshuffle", "shuffle", "bitshuffle")
    return {
        "name": "blosc",
        "configuration": {
            "typesize": max(1, min(_value(step, 2, 1), 255)),
            "cname": names[_value(step, 6, 0) % len(names)],
            "clevel": min(_value(step, 4, 5), 9),
            "shuffle": shuffles[_value(step, 5, 1) % len(shuffles)],
            "blocksize": 0,
        },
    }


# None: the filter changes nothing.
_CODECS: Mapping[int, Callable[[HDF5Filter], CodecJSON | None]] = {
    DEFLATE: lambda step: {"name": "numcodecs.zlib", "configuration": {"level": min(_value(step, 0, 6), 9)}},
    SHUFFLE: _shuffle,
    FLETCHER32: lambda _: {"name": "numcodecs.fletcher32", "configuration": {}},
    BZIP2: lambda step: {"name": "numcodecs.bz2", "configuration": {"level": min(max(_value(step, 0, 9), 1), 9)}},
    ZSTD: lambda step: {"name": "zstd", "configuration": {"level": min(_value(step, 0, 3), 22), "checksum": False}},
    BLOSC: _blosc,
}
