"""``sources.parq``: the files that the references of a set point to, and what they were when they were scanned.

Its column `url` holds them as the partitions call them, in order of first use; the columns `size`, `etag`,
`last_modified` and `scanned_at` are null, or left out, where nothing is known. See
`virtualzarr_refs.references.source_columns`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.references.parquet.partition import SET
from virtualzarr_refs.references.source_columns import Columns, write_columns
from virtualzarr_refs.sources.scanned import ScannedSource

MAX_SOURCES = 1 << 27
"""More is taken for an attack on memory."""

_TYPES = {"size": pa.int64(), "etag": pa.string(), "last_modified": pa.float64(), "scanned_at": pa.float64()}


def encode_sources(names: Sequence[str], scanned: Sequence[ScannedSource | None], set_id: str) -> bytes:
    """The file of the table.

    Parameters
    ----------
    names : sequence of str
        What the set calls the sources.
    scanned : sequence of ScannedSource or None
        What they were, if that is known.
    set_id : str
        The set that the table belongs to.
    """
    rows = {str(row): source for row, source in enumerate(scanned) if source is not None}
    known = write_columns(rows)
    places = [int(row) for row in known.pop("url", [])]
    columns = {"url": pa.array(names, pa.string())}
    for name, values in known.items():
        spread = dict(zip(places, values, strict=True))
        columns[name] = pa.array([*map(spread.get, range(len(names)))], _TYPES[name])
    sink = pa.BufferOutputStream()
    table = pa.table(columns, metadata={SET: set_id.encode()})
    pq.write_table(table, sink, compression="zstd", use_dictionary=False, write_statistics=False)
    return sink.getvalue().to_pybytes()


def decode_sources(data: bytes | memoryview, set_id: str) -> tuple[list[str], Columns]:
    """Read the table.

    Returns
    -------
    names, columns : list of str, dict of str to list
        What the set calls the sources; and those that something is known of, as columns.

    Raises
    ------
    ReferenceSetError
        If it is malformed, or another set's.
    """
    columns, owner = _read(data)
    names = columns.get("url")
    if names is None or not all(isinstance(name, str) for name in names):
        raise ReferenceSetError("the table of sources has no column 'url' of texts")
    if owner != set_id.encode():
        raise ReferenceSetError("the table of sources belongs to another set; was this one replaced? Open it again")
    known = [row for row, size in enumerate(columns.get("size", ())) if size is not None]
    return names, {name: [values[row] for row in known] for name, values in columns.items()} if known else {}


def _read(data: bytes | memoryview) -> tuple[Columns, bytes]:
    try:
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)))
        if file.metadata.num_rows > MAX_SOURCES:
            raise ReferenceSetError(f"the table of sources has {file.metadata.num_rows} rows, too many to be read")
        names = [name for name in ("url", *_TYPES) if name in file.schema_arrow.names]
        return file.read(names).to_pydict(), (file.metadata.metadata or {}).get(SET, b"")
    except (pa.ArrowException, OSError) as error:
        raise ReferenceSetError(f"the table of sources is no table in Parquet: {error}") from error
