"""The file of one partition: a Parquet table with a row for each chunk, in C order of the grid.

=========  ==========================  =========================================================================
column     type                        meaning
=========  ==========================  =========================================================================
`path`     string, dictionary-encoded  the source; null where the chunk is inline or missing
`offset`   int64, delta-encoded        where the chunk begins in it, in bytes
`size`     int64, delta-encoded        bytes of the chunk
`raw`      binary                      the bytes of an inline chunk, else null; left out if there is none
`variant`  uint16                      how the chunk is encoded; left out where all chunks are encoded in one way
`index`    binary                      of a shard made up of byte ranges, where they lie (see `InnerChunks.to_bytes`);
                                       left out if there is none
=========  ==========================  =========================================================================

kerchunk's partitions have the first four of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from virtualzarr_refs.errors import NotRepresentableError, ReferenceSetError
from virtualzarr_refs.inner_chunks import InnerChunks
from virtualzarr_refs.manifest import MISSING, Manifest
from virtualzarr_refs.references.parquet.arrow_columns import Column, single, to_arrow, to_numpy, valid_values

SET = b"virtualzarr_refs.set"
"""Key of the file's own metadata under which it says which set it belongs to."""

_MAX_OFFSET = 1 << 63
_MAX_BYTES = 1 << 31
"""Bytes of a table; more is taken for an attack on memory."""

_COLUMNS = ("path", "offset", "size", "raw", "variant", "index")

type Table = Any
"""A table of pyarrow's, which has no types."""


def encode(block: Manifest, set_id: str | None = None) -> bytes:
    """The file of a partition.

    Parameters
    ----------
    block : Manifest
        Of one axis.
    set_id : str, optional
        The set that it belongs to; None makes a file of kerchunk's, whose rows are all there is.

    Raises
    ------
    NotRepresentableError
        If an offset does not fit.
    """
    columns = _columns(block, whole=set_id is None)
    # fastparquet, by which kerchunk reads, makes floats of integers that may be null
    fields = [
        pa.field(name, column.type, name not in ("offset", "size", "variant")) for name, column in columns.items()
    ]
    schema = pa.schema(fields, None if set_id is None else {SET: set_id.encode()})
    table = pa.Table.from_arrays([*columns.values()], schema=schema)
    sink = pa.BufferOutputStream()
    delta = {name: "DELTA_BINARY_PACKED" for name in ("offset", "size") if name in columns and set_id is not None}
    dictionary: list[str] = [name for name in ("path", "variant") if name in columns]
    pq.write_table(
        table,
        sink,
        compression="zstd",
        use_dictionary=cast("Any", dictionary),
        column_encoding=delta or None,
        # fastparquet, by which kerchunk reads, makes floats of integers that are not known to have no null
        write_statistics=cast("Any", ["offset", "size"] if set_id is None else False),
        row_group_size=max(block.size, 1),
    )
    return sink.getvalue().to_pybytes()


def _columns(block: Manifest, *, whole: bool) -> dict[str, Any]:
    is_virtual = block.url_id != MISSING
    columns: dict[str, Any] = {}
    if whole or is_virtual.any():
        columns["path"] = _paths(block, is_virtual, is_plain=whole)
        columns["offset"], columns["size"] = _integers(block.offset, is_virtual), _integers(block.length, is_virtual)
    if whole or block.inline:
        columns["raw"] = pa.array(
            [*map(block.inline.get, range(block.size))], pa.binary() if whole else pa.large_binary()
        )
    if block.variant is not None:
        columns["variant"] = to_arrow(block.variant)
    if block.inner_chunks:
        indexes = {position: inner.to_bytes() for position, inner in block.inner_chunks.items()}
        columns["index"] = pa.array([*map(indexes.get, range(block.size))], pa.large_binary())
    return columns


def _paths(block: Manifest, is_virtual: NDArray[np.bool_], *, is_plain: bool) -> Column:
    used = used_numbers(block)
    numbers = np.zeros(len(block.urls) + 1, np.int32)
    numbers[used] = np.arange(used.size)
    indices = numbers[np.minimum(block.url_id, np.uint32(len(block.urls)))]
    names = pa.array([block.urls[number] for number in used.tolist()], pa.string())
    paths = pa.DictionaryArray.from_arrays(to_arrow(indices, is_virtual), names)
    return paths.dictionary_decode() if is_plain else paths  # pandas gives categories back with NaN for null


def used_numbers(block: Manifest) -> NDArray[np.intp]:
    """Which of its urls a manifest points to."""
    limited = np.minimum(block.url_id, np.uint32(len(block.urls))).reshape(-1)
    return np.flatnonzero(np.bincount(limited, minlength=len(block.urls))[: len(block.urls)])


def _integers(column: NDArray[np.uint32 | np.uint64], is_virtual: NDArray[np.bool_]) -> Column:
    values = np.where(is_virtual, column, 0)
    if values.size and int(values.max()) >= _MAX_OFFSET:
        raise NotRepresentableError("an offset or a length is 2**63 bytes or more, which Parquet sets cannot say")
    return to_arrow(values.astype(np.int64))


def decode(data: bytes | memoryview, size: int, resolve: Callable[[str], str], *, most: int) -> tuple[Manifest, bytes]:
    """Read the file of a partition.

    Parameters
    ----------
    data : bytes
        The file.
    size : int
        Chunks that the partition has. Rows that follow are not of this version of the set.
    resolve : callable
        Gives the url of a source for what the file calls it, or raises ReferenceSetError.
    most : int
        Rows that a partition may have.

    Returns
    -------
    manifest, set_id : Manifest, bytes
        Of one axis; and the set that the file says it belongs to, empty if it says none.

    Raises
    ------
    ReferenceSetError
        If it is malformed.
    """
    try:
        table, metadata = _read(data, most)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, ReferenceSetError):
            raise
        raise ReferenceSetError(f"it is no table in Parquet: {error}") from error
    if len(table) < size:
        raise ReferenceSetError(f"it has {len(table)} rows, and {size} chunks are in it")
    return _manifest(table.slice(0, size), resolve), metadata.get(SET, b"")


def _read(data: bytes | memoryview, most: int) -> tuple[Table, Mapping[bytes, bytes]]:
    reader = pa.BufferReader(pa.py_buffer(data))
    metadata = pq.read_metadata(reader)
    size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if metadata.num_rows > most or size > _MAX_BYTES:
        raise ReferenceSetError(f"it has {metadata.num_rows} rows in {size} bytes, which is too much to be read")
    names = [name for name in _COLUMNS if name in metadata.schema.names]
    file = pq.ParquetFile(reader, metadata=metadata, read_dictionary=["path"] if "path" in names else None)
    return file.read(names, use_threads=False), metadata.metadata or {}


def _manifest(table: Table, resolve: Callable[[str], str]) -> Manifest:
    size = len(table)
    inline = {place: _as_bytes(value) for place, value in _present(table, "raw")}
    urls, url_id = _read_paths(table, resolve)
    url_id[list(inline)] = MISSING
    is_virtual = url_id != MISSING
    offset, length = (_read_integers(table, name, is_virtual) for name in ("offset", "size"))
    if size and int((offset + length).max()) >= _MAX_OFFSET:
        raise ReferenceSetError("a chunk ends at 2**63 bytes or later")
    variant = _read_variant(table)
    narrow = length.astype(np.uint32) if not size or length.max() <= np.iinfo(np.uint32).max else length
    return Manifest(urls, url_id, offset, narrow, variant, inline, _read_indexes(table, offset, length))


def _read_paths(table: Table, resolve: Callable[[str], str]) -> tuple[tuple[str, ...], NDArray[np.uint32]]:
    nothing = np.full(len(table), MISSING)
    if "path" not in table.column_names or pa.types.is_null(table["path"].type):
        return (), nothing
    column = single(table["path"])
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if not _is_text(column.type.value_type):
        if column.null_count == len(column):
            return (), nothing
        raise ReferenceSetError(f"its column 'path' is of the type {column.type.value_type}, and not of texts")
    valid = valid_values(column.indices)
    indices = np.where(valid, to_numpy(column.indices), len(column.dictionary))
    names = column.dictionary.to_pylist()
    used = np.flatnonzero(np.bincount(indices, minlength=len(names))[: len(names)])
    numbers = np.full(len(names) + 1, MISSING)
    numbers[used] = np.arange(used.size)
    return tuple(resolve(names[number]) for number in used.tolist()), numbers[indices]


def _is_text(type_: Any) -> bool:  # noqa: ANN401  a type of pyarrow's
    return pa.types.is_string(type_) or pa.types.is_large_string(type_)


def _read_integers(table: Table, name: str, is_virtual: NDArray[np.bool_]) -> NDArray[np.uint64]:
    if not is_virtual.any():
        return np.zeros(len(table), np.uint64)
    if name not in table.column_names or not pa.types.is_integer(table[name].type):
        raise ReferenceSetError(f"it has no column {name!r} of integers")
    column = single(table[name])
    values = to_numpy(column)
    if not valid_values(column)[is_virtual].all() or (values.dtype.kind == "i" and (values[is_virtual] < 0).any()):
        raise ReferenceSetError(f"its column {name!r} has a number below zero, or lacks one")
    return np.where(is_virtual, values, 0).astype(np.uint64)


def _read_indexes(table: Table, offset: NDArray[np.uint64], length: NDArray[np.uint64]) -> dict[int, InnerChunks]:
    try:
        inner_chunks = {place: InnerChunks.from_bytes(_as_bytes(value)) for place, value in _present(table, "index")}
    except ReferenceSetError:
        raise
    except ValueError as error:
        raise ReferenceSetError(f"the index of a shard cannot be read: {error}") from error
    for place, inner in inner_chunks.items():
        if (inner.span.offset, inner.span.length) != (offset[place], length[place]):
            raise ReferenceSetError("a shard does not lie where its index says")
    return inner_chunks


def _present(table: Table, name: str) -> Iterator[tuple[int, object]]:
    """The values of a column that are not null, after their rows."""
    if name not in table.column_names or pa.types.is_null(table[name].type):
        return
    column = single(table[name])
    for place in np.flatnonzero(valid_values(column)).tolist():
        yield place, column[place].as_py()


def _as_bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise ReferenceSetError("a column holds what is neither bytes nor text")


def _read_variant(table: Table) -> NDArray[np.uint16] | None:
    if "variant" not in table.column_names:
        return None
    column = single(table["variant"])
    if not pa.types.is_uint16(column.type) or column.null_count:
        raise ReferenceSetError("its column 'variant' does not hold the numbers of variants")
    return to_numpy(column).astype(np.uint16)
