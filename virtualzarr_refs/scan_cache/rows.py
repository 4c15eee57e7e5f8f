"""A hierarchy over one source as rows of an Arrow table: a row for each node, each before what it holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import Shape
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import Manifest
from virtualzarr_refs.metadata import ArrayMetadata, GroupMetadata, NodeMetadata, decode_metadata, encode_metadata


def _schema(length: Any) -> Any:  # noqa: ANN401  Arrow has no types
    return pa.schema({
        "path": pa.binary(),
        "document": pa.binary(),  # zarr.json
        "is_in_source": pa.bool_(),  # whether any chunk is
        "url_id": pa.large_list(pa.uint32()),
        "offset": pa.large_list(pa.uint64()),
        "length": pa.large_list(length),
        "variant": pa.large_list(pa.uint16()),  # none where an array has only one
        "inline_position": pa.large_list(pa.int64()),
        "inline": pa.large_list(pa.large_binary()),
    })  # fmt: skip


_NARROW, _WIDE = _schema(pa.uint32()), _schema(pa.uint64())
"""The columns of a manifest are lists over the chunk grid in C order; one element stands for a constant column."""


def _lists(column: Any) -> list[NDArray[Any]]:  # noqa: ANN401
    """The lists of a column, as NumPy views of its buffers."""
    starts, values = column.offsets.tolist(), column.values.to_numpy(zero_copy_only=True)
    return [values[start:stop] for start, stop in pairwise(starts)]


@dataclass(frozen=True, slots=True)
class _Inline:
    """The chunks of one array that are kept in the rows."""

    positions: NDArray[np.int64]
    values: Any

    def chunks(self) -> dict[int, bytes]:
        return dict(zip(self.positions.tolist(), self.values.as_py(), strict=True))


def to_batch(group: VirtualGroup) -> Any:  # noqa: ANN401
    """The rows of a hierarchy whose chunks lie in one source, or inline."""
    nodes = list(group.walk())
    manifests = [node.manifest.loaded() if isinstance(node, VirtualArray) else None for _, node in nodes]
    lists = {name: [_shortened(m, name) for m in manifests] for name in ("url_id", "offset", "length", "variant")}
    longest = max(int(column.max(initial=0)) for column in lists["length"])
    schema = _NARROW if longest < 1 << 32 else _WIDE
    columns: list[Any] = [
        pa.array([path.encode("utf-8", "surrogatepass") for path, _ in nodes], pa.binary()),
        pa.array([encode_metadata(node.metadata) for _, node in nodes], pa.binary()),
        pa.array([m is not None and bool(m.virtual_positions().size) for m in manifests]),
    ]
    columns += [_column(parts, schema.field(name).type) for name, parts in lists.items()]
    inline = [{} if m is None else m.inline for m in manifests]
    positions = [np.fromiter(own, np.int64, len(own)) for own in inline]
    columns.append(_column(positions, schema.field("inline_position").type))
    columns.append(pa.array([list(own.values()) for own in inline], schema.field("inline").type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def from_batch(batch: Any, url: str) -> VirtualGroup:  # noqa: ANN401
    """The hierarchy of some rows, its chunks in the source at `url`; its columns are views of the batch's buffers.

    Raises
    ------
    ValueError
        If these are not the rows of a hierarchy. Nothing about them is believed.
    """
    if batch.schema.remove_metadata() not in (_NARROW, _WIDE):
        raise ValueError("these are other columns")
    batch.validate(full=True)
    names, documents, is_in_source, *columns, positions, inline = batch.columns
    lists = [_lists(column) for column in columns]
    kept = [_Inline(*pair) for pair in zip(_lists(positions), inline, strict=True)] if len(positions.values) else None
    nodes: dict[str, VirtualArray | GroupMetadata] = {}
    rows = zip(names.to_pylist(), documents.to_pylist(), is_in_source.to_pylist(), *lists, strict=True)
    for row, (path, document, has_url, *parts) in enumerate(rows):
        node: Any = _decoded(document)
        if isinstance(node, ArrayMetadata):
            own = {} if kept is None else kept[row].chunks()
            node = VirtualArray(node, _manifest(node.chunk_grid.grid_shape, (url,) if has_url else (), parts, own))
        nodes[path.decode("utf-8", "surrogatepass")] = node
    return _assembled(nodes)


@lru_cache(maxsize=4096)
def _decoded(document: bytes) -> NodeMetadata:
    """The metadata of a node; the files of a series mostly share it, so it is read and kept once."""
    return decode_metadata(document)


def _shortened(manifest: Manifest | None, name: str) -> NDArray[Any]:
    """A column over the grid, or its only element where it is constant."""
    column: NDArray[Any] | None = None if manifest is None else getattr(manifest, name)
    if column is None:
        return np.empty(0, np.uint16)
    if column.size > 1 and (not any(column.strides) or (column == column[(0,) * column.ndim]).all()):
        return column[(0,) * column.ndim].reshape(1)
    return column.reshape(-1)


def _column(parts: Sequence[NDArray[Any]], type_: Any) -> Any:  # noqa: ANN401
    ends = np.cumsum([0, *(part.size for part in parts)], dtype=np.int64)
    values = np.concatenate([part.astype(type_.value_type.to_pandas_dtype(), copy=False) for part in parts])
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(values), type=type_)


def _manifest(
    grid_shape: Shape, urls: tuple[str, ...], columns: Iterable[NDArray[Any]], inline: Mapping[int, bytes]
) -> Manifest:
    url_id, offset, length, variant = columns
    return Manifest(
        urls,
        _spread(url_id, grid_shape),
        _spread(offset, grid_shape),
        _spread(length, grid_shape),
        _spread(variant, grid_shape) if variant.size else None,
        inline,
    )


def _spread(column: NDArray[Any], grid_shape: Shape) -> NDArray[Any]:
    if column.size != 1:
        return column.reshape(grid_shape)
    # What `np.broadcast_to` does, ten times faster.
    return np.ndarray(grid_shape, column.dtype, cast("Any", column), strides=(0,) * len(grid_shape))


def _assembled(nodes: Mapping[str, VirtualArray | GroupMetadata]) -> VirtualGroup:
    arrays: defaultdict[str, dict[str, VirtualArray]] = defaultdict(dict)
    groups: defaultdict[str, dict[str, VirtualGroup]] = defaultdict(dict)
    for path, node in nodes.items():
        if isinstance(node, VirtualArray):
            parent, _, name = path.rpartition("/")
            arrays[parent][name] = node
    for path in reversed([path for path, node in nodes.items() if isinstance(node, GroupMetadata)]):
        parent, _, name = path.rpartition("/")
        metadata = cast("GroupMetadata", nodes[path])
        group = VirtualGroup(metadata, arrays.pop(path, {}), dict(reversed(groups.pop(path, {}).items())))
        if not path:
            break
        groups[parent][name] = group
    else:
        raise ValueError("there is no root")
    if arrays or groups:
        raise ValueError("a node lies in no group")
    return group
