"""The file that keeps what one scan found.

An Arrow IPC stream with one record batch (see `rows`), which any Arrow library reads, and behind its end a trailer:
the CRC-32 of all bytes before it, and a signature. The schema's metadata has one member, ``virtualzarr_refs``: JSON
that says what was scanned, how, and by what. There are no urls in the rows: all chunks lie in the source itself.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import deflate
import numpy as np
import pyarrow as pa

from virtualzarr_refs.errors import VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualGroup
from virtualzarr_refs.scan_cache.rows import from_batch, to_batch
from virtualzarr_refs.scan_cache.seen import Seen
from virtualzarr_refs.sources import SourceIdentity

_TRAILER = np.dtype([("crc32", "<u4"), ("signature", "S8")])
_SIGNATURE = b"VZMETA 1"
"""The last character is the version of the format; what has another one is scanned again."""

_HEADER = b"virtualzarr_refs"
_MALFORMED = (
    *(pa.ArrowException, OSError, StopIteration),  # what Arrow says of streams
    *(VirtualZarrError, ValueError, KeyError, TypeError, AttributeError, OverflowError),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a scan found.

    Parameters
    ----------
    key : str
        What was scanned, how, and by what; an entry is only good for the same.
    seen : Seen
        What the source was when it was scanned.
    batch : pyarrow.RecordBatch
        The hierarchy, see `rows`.
    """

    key: str
    seen: Seen
    batch: Any

    @classmethod
    def of(cls, key: str, seen: Seen, group: VirtualGroup) -> Entry:
        """The entry of a group."""
        return cls(key, seen, to_batch(group))

    def encode(self) -> bytes:
        """The bytes of the file."""
        header = json.dumps({"key": self.key, **asdict(self.seen)})
        schema = self.batch.schema.with_metadata({_HEADER: header.encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_batch(self.batch.replace_schema_metadata(schema.metadata))
        body = sink.getvalue()
        return body.to_pybytes() + np.array((deflate.crc32(body), _SIGNATURE), _TRAILER).tobytes()

    @classmethod
    def decode(cls, data: Any) -> Entry | None:  # noqa: ANN401  an Arrow buffer
        """Read a file without copying its columns; None if it is damaged, or no entry of this version."""
        whole = memoryview(data)
        if len(whole) < _TRAILER.itemsize:
            return None
        body = whole[: -_TRAILER.itemsize]
        (trailer,) = np.frombuffer(whole[len(body) :], _TRAILER)
        if trailer["signature"] != _SIGNATURE or trailer["crc32"] != deflate.crc32(body):
            return None
        try:
            return cls._parse(data.slice(0, len(body)))
        except _MALFORMED:
            return None

    @classmethod
    def _parse(cls, body: Any) -> Entry:  # noqa: ANN401
        with pa.ipc.open_stream(body) as reader:
            batch = reader.read_next_batch()
        header: dict[str, Any] = json.loads(batch.schema.metadata[_HEADER])
        return cls(str(header["key"]), _parse_seen(header), batch)

    def group(self, url: str) -> VirtualGroup | None:
        """The hierarchy, its chunks in the source at `url`; None if the rows make none."""
        try:
            return from_batch(self.batch, url)
        except _MALFORMED:
            return None


def _parse_seen(header: dict[str, Any]) -> Seen:
    size, etag, time = (header["identity"][name] for name in ("size", "etag", "last_modified"))
    if not isinstance(etag, str | None) or not isinstance(time, float | None):
        raise TypeError("an etag is a text, and a time a number")
    return Seen(SourceIdentity(size, etag, time), header["is_sure"] is True, header["content"])
