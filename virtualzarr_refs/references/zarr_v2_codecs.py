"""Codecs between Zarr v2 (filters and a compressor, named as numcodecs does) and the pipelines of Zarr v3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np

from virtualzarr_refs.chunk_grid import JSON
from virtualzarr_refs.errors import NotRepresentableError, ReferenceSetError, UnsupportedError
from virtualzarr_refs.references.zarr_v2_types import ByteOrder, byte_order

type Codec = dict[str, JSON]
type Configuration = dict[str, JSON]

ZARR_V2 = "virtualzarr_refs.zarr_v2"
"""Our codec that stands for all of Zarr v2's codecs of an array."""

NUMCODECS = "numcodecs."
"""What stands before the id of a numcodecs codec in its Zarr v3 name."""

ARRAY_TO_ARRAY = frozenset("astype bitround delta fixedscaleoffset packbits quantize".split())
ARRAY_TO_BYTES = frozenset("pcodec vlen-utf8 zfpy".split())
BYTES_TO_BYTES = frozenset(
    "adler32 blosc bz2 crc32 crc32c fletcher32 gzip jenkins_lookup3 lz4 lzma shuffle zlib zstd".split()
)
_KINDS = {id_: kind for kind, ids in enumerate((ARRAY_TO_ARRAY, ARRAY_TO_BYTES, BYTES_TO_BYTES)) for id_ in ids}

_SHUFFLES = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}
_SHUFFLE_NUMBERS: Mapping[JSON, int] = {name: number for number, name in _SHUFFLES.items()}
_BLOSC_COMPRESSORS = frozenset("blosclz lz4 lz4hc snappy zlib zstd".split())


def read_pipeline(codecs: Sequence[Configuration], dtype: np.dtype[Any]) -> tuple[Codec, ...]:
    """The Zarr v3 pipeline that decodes as filters and a compressor do.

    Parameters
    ----------
    codecs : sequence of dict
        The filters and then the compressor, in order of encoding.
    dtype : numpy.dtype
        The type of the array, in the byte order it is stored in.

    Raises
    ------
    ReferenceSetError
        If one is malformed.
    UnsupportedError
        If Zarr v3 has no such codec, or cannot put them in this order.
    """
    complete = [_complete(codec, dtype) for codec in codecs]
    kinds = [_kind(codec) for codec in complete]
    if kinds != sorted(kinds) or kinds.count(1) > 1:
        raise UnsupportedError("Zarr v3 cannot apply these codecs in this order", feature=_listed(codecs))
    named = [_to_v3(codec, dtype) for codec in complete]
    arrays = kinds.count(0)
    order = byte_order(stored_type(complete[:arrays], dtype))
    if 1 not in kinds:
        return (*named[:arrays], _bytes_codec(order), *named[arrays:])
    if order not in (None, "little"):
        raise UnsupportedError("values that were not little-endian cannot be told from others", feature=_listed(codecs))
    return tuple(named)


def write_pipeline(codecs: Sequence[Codec], dtype: np.dtype[Any]) -> list[Configuration]:
    """The filters and compressor of Zarr v2, in order of encoding, of a Zarr v3 pipeline without transposition.

    Parameters
    ----------
    codecs : sequence of dict
        The pipeline.
    dtype : numpy.dtype
        The type of the array, in the byte order that it is stored in.

    Raises
    ------
    NotRepresentableError
        If Zarr v2 has no such codec; the message names it.
    """
    written = [_to_v2(codec, dtype) for codec in codecs if codec["name"] != "bytes"]
    filters = [codec for codec in written if codec["id"] in ARRAY_TO_ARRAY]
    try:
        stored = stored_type(filters, dtype)
    except UnsupportedError as error:
        raise NotRepresentableError("its filters are for another data type than the array's") from error
    if filters and byte_order(stored) not in (None, serialized_order(codecs)):
        raise NotRepresentableError("its filters and its values have different byte orders")
    return written


def serialized_order(codecs: Sequence[Codec]) -> Literal["little", "big"]:
    """The byte order that the codec ``bytes`` of a Zarr v3 pipeline names; little-endian where there is none."""
    serializer = next((codec for codec in codecs if codec["name"] == "bytes"), {})
    return cast("dict[str, Any]", serializer.get("configuration") or {}).get("endian", "little")


def _complete(codec: object, dtype: np.dtype[Any]) -> Configuration:
    """The codec with the defaults that numcodecs has and Zarr v3's wrappers do not share."""
    if not isinstance(codec, dict) or not isinstance(codec.get("id"), str):
        raise ReferenceSetError(f"{codec!r:.200} is no codec")
    given = cast("Configuration", codec)
    return _DEFAULTS.get(cast("str", given["id"]), lambda _: {})(dtype) | given


def _defaults_from_type(*names: str) -> Callable[[np.dtype[Any]], Configuration]:
    return lambda dtype: dict.fromkeys(names, dtype.str)


_DEFAULTS: Mapping[str, Callable[[np.dtype[Any]], Configuration]] = {
    "shuffle": lambda _: {"elementsize": 4},
    "delta": _defaults_from_type("dtype"),
    "fixedscaleoffset": _defaults_from_type("dtype"),
    "quantize": _defaults_from_type("dtype"),
    "astype": _defaults_from_type("decode_dtype"),
}


def _kind(codec: Configuration) -> int:
    kind = _KINDS.get(cast("str", codec["id"]))
    if kind is None or (codec["id"] == "quantize" and codec.get("astype", codec["dtype"]) != codec["dtype"]):
        raise UnsupportedError("Zarr v3 has no such codec", feature=_listed([codec]))
    return kind


def _listed(codecs: Sequence[Configuration]) -> str:
    return "codec " + ", ".join(str(codec.get("id")) for codec in codecs)


def stored_type(filters: Sequence[Configuration], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of what the last of some filters gives.

    Raises
    ------
    UnsupportedError
        If a filter is for another type than it is applied to: Zarr v2 then reinterprets bytes.
    """
    for codec in filters:
        own = codec.get("decode_dtype") or codec.get("dtype")
        if own and np.dtype(cast("str", own)) != dtype:
            raise UnsupportedError("a filter is for another data type than the array's", feature=_listed([codec]))
        name = codec.get("encode_dtype") or codec.get("astype") or _FIXED_TYPES.get(cast("str", codec["id"]))
        dtype = np.dtype(cast("str", name)) if name else dtype
    return dtype


_FIXED_TYPES = {"packbits": "|u1"}


def _bytes_codec(order: ByteOrder) -> Codec:
    if order == "mixed":
        raise UnsupportedError("Zarr v3 stores all fields of a type in one byte order", feature="byte order of fields")
    return {"name": "bytes"} if order is None else {"name": "bytes", "configuration": {"endian": order}}


def _to_v3(codec: Configuration, dtype: np.dtype[Any]) -> Codec:
    id_ = cast("str", codec["id"])
    configuration = {name: value for name, value in codec.items() if name != "id"}
    return _V3_BUILDERS.get(id_, _plain_v3)(id_, configuration, dtype)


def _plain_v3(id_: str, configuration: Configuration, _: np.dtype[Any]) -> Codec:
    return {"name": NUMCODECS + id_, "configuration": configuration}


def _typed_v3(id_: str, configuration: Configuration, dtype: np.dtype[Any]) -> Codec:
    # Spelled out, because Zarr v3's wrapper would otherwise go by the array's type in native byte order.
    return _plain_v3(id_, {"astype": configuration["dtype"]} | configuration, dtype)


def _zstd_v3(_: str, configuration: Configuration, __: np.dtype[Any]) -> Codec:
    return {"name": "zstd", "configuration": {"level": 0, "checksum": False} | configuration}


def _gzip_v3(_: str, configuration: Configuration, __: np.dtype[Any]) -> Codec:
    return {"name": "gzip", "configuration": {"level": 1} | configuration}


def _blosc_v3(id_: str, configuration: Configuration, dtype: np.dtype[Any]) -> Codec:
    shuffle = _SHUFFLES.get(cast("int", configuration.get("shuffle", 1)))
    if shuffle is None or configuration.get("cname", "lz4") not in _BLOSC_COMPRESSORS:
        return _plain_v3(id_, configuration, dtype)
    return {
        "name": "blosc",
        "configuration": {
            "cname": configuration.get("cname", "lz4"),
            "clevel": configuration.get("clevel", 5),
            "shuffle": shuffle,
            "typesize": min(max(dtype.itemsize, 1), 255),
            "blocksize": configuration.get("blocksize", 0),
        },
    }


# Codecs of the Zarr v3 core are used where they decode the same bytes: every reader has them.
_V3_BUILDERS: Mapping[str, Callable[[str, Configuration, np.dtype[Any]], Codec]] = {
    "vlen-utf8": lambda *_: {"name": "vlen-utf8"},
    "zstd": _zstd_v3,
    "gzip": _gzip_v3,
    "blosc": _blosc_v3,
    "delta": _typed_v3,
    "fixedscaleoffset": _typed_v3,
}


def _to_v2(codec: Codec, dtype: np.dtype[Any]) -> Configuration:
    name = cast("str", codec["name"])
    configuration = cast("Configuration", codec.get("configuration") or {})
    if name in _V2_BUILDERS:
        return _V2_BUILDERS[name](configuration, dtype)
    if name.removeprefix(NUMCODECS) not in _KINDS or not name.startswith(NUMCODECS):
        raise NotRepresentableError(f"its codec {name!r} has no form in Zarr v2")
    id_ = name.removeprefix(NUMCODECS)
    return {"id": id_} | _DEFAULTS.get(id_, lambda _: {})(dtype) | configuration


def _blosc_v2(configuration: Configuration, _: np.dtype[Any]) -> Configuration:
    shuffle = _SHUFFLE_NUMBERS.get(configuration.get("shuffle", "noshuffle"), 0)
    return {"id": "blosc", "blocksize": 0} | _without(configuration, "typesize") | {"shuffle": shuffle}


def _shuffle_v2(configuration: Configuration, dtype: np.dtype[Any]) -> Configuration:
    # Without a size, numcodecs takes 4 bytes, and Zarr v3's wrapper the array's item size.
    return {"id": "shuffle", "elementsize": dtype.itemsize} | configuration


def _without(configuration: Configuration, name: str) -> Configuration:
    return {key: value for key, value in configuration.items() if key != name}


_V2_BUILDERS: Mapping[str, Callable[[Configuration, np.dtype[Any]], Configuration]] = {
    "blosc": _blosc_v2,
    "crc32c": lambda *_: {"id": "crc32c", "location": "end"},
    "gzip": lambda configuration, _: {"id": "gzip", **configuration},
    "numcodecs.shuffle": _shuffle_v2,
    "vlen-utf8": lambda *_: {"id": "vlen-utf8"},
    "zstd": lambda configuration, _: {"id": "zstd", **configuration},
}
