"""VirtualiZarr's manifest groups as ours, and ours as VirtualiZarr's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from virtualzarr_refs.chunk_grid import ChunkKeyEncoding, RegularGrid
from virtualzarr_refs.errors import FormatError, NotRepresentableError, VirtualZarrError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup
from virtualzarr_refs.manifest import MISSING, Manifest, index_of
from virtualzarr_refs.metadata import EXTENSION, ArrayMetadata, GroupMetadata, decode_metadata
from virtualzarr_refs.references.variants import has_variants
from virtualzarr_refs.shards.plain import without_shards

if TYPE_CHECKING:
    from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup

_MAX_CHUNKS = 1 << 28
"""Chunks of a grid over which VirtualiZarr's columns, of 32 bytes a chunk, are made."""

type UrlOf = Callable[[str], str]


def from_manifest_group(group: ManifestGroup, url_of: UrlOf, path: str = "") -> VirtualGroup:
    """A group of VirtualiZarr's as ours.

    Parameters
    ----------
    group : ManifestGroup
        What a parser made.
    url_of : callable
        The url for us, of what VirtualiZarr calls a path.
    path : str
        Of the group in the hierarchy.

    Raises
    ------
    FormatError
        If an array of it cannot be understood; the error names the node.
    """
    arrays = {name: _from_array(array, url_of, f"{path}/{name}") for name, array in group.arrays.items()}
    groups = {name: from_manifest_group(inner, url_of, f"{path}/{name}") for name, inner in group.groups.items()}
    return VirtualGroup(GroupMetadata(dict(cast("Any", group.metadata.attributes))), arrays, groups)


def _from_array(array: ManifestArray, url_of: UrlOf, path: str) -> VirtualArray:
    from zarr.core.buffer import default_buffer_prototype  # noqa: PLC0415  slow to import

    try:
        document = array.metadata.to_buffer_dict(default_buffer_prototype())["zarr.json"].to_bytes()
        metadata = cast("ArrayMetadata", decode_metadata(document))
        return VirtualArray(metadata, _from_manifest(array.manifest, metadata.chunk_grid.grid_shape, url_of))
    except VirtualZarrError as error:
        raise error.at(node=path.lstrip("/")) from error.__cause__
    except ValueError as error:
        raise FormatError(f"VirtualiZarr's parser made an impossible array: {error}", node=path.lstrip("/")) from error


def _from_manifest(manifest: ChunkManifest, grid: tuple[int, ...], url_of: UrlOf) -> Manifest:
    from virtualizarr.manifests.manifest import INLINED_CHUNK_PATH  # noqa: PLC0415  an extra

    columns = cast("Any", manifest)  # its public members make a Python object for each chunk
    if math.prod(manifest.shape_chunk_grid) != math.prod(grid):
        raise ValueError(f"a manifest of {manifest.shape_chunk_grid} chunks over a grid of {grid}")
    paths = columns._paths.reshape(-1).tolist()  # noqa: SLF001
    numbers = {path: i for i, path in enumerate(p for p in dict.fromkeys(paths) if p not in ("", INLINED_CHUNK_PATH))}
    url_id = np.array([numbers.get(path, MISSING) for path in paths], np.uint32).reshape(grid)
    offset, length = (np.asarray(column, np.uint64).reshape(grid) for column in (columns._offsets, columns._lengths))  # noqa: SLF001
    shape = manifest.shape_chunk_grid
    inlined = cast("Mapping[tuple[int, ...], bytes]", columns._inlined)  # noqa: SLF001
    inline = {int(np.ravel_multi_index(index, shape)) if shape else 0: bytes(data) for index, data in inlined.items()}
    return Manifest(tuple(map(url_of, numbers)), url_id, offset, length, inline=inline)


def to_manifest_group(group: VirtualGroup, path_of: UrlOf, drop: Iterable[str] = ()) -> ManifestGroup:
    """A group as VirtualiZarr's.

    Parameters
    ----------
    group : VirtualGroup
        To be carried.
    path_of : callable
        What VirtualiZarr calls a path, of a url of ours.
    drop : iterable of str
        Names of arrays to leave out, wherever they are.

    Raises
    ------
    NotRepresentableError
        The message lists the arrays, the reasons and the way out.
    """
    dropped = frozenset(drop)
    group = without_shards(group)
    kept = {p: array for p, array in group.walk_arrays() if p.rpartition("/")[2] not in dropped}
    reasons = {path: reason for path, array in kept.items() if (reason := _reason(array))}
    arrays: dict[str, ManifestArray] = {}
    for path in kept.keys() - reasons.keys():
        try:
            arrays[path] = _to_array(path.rpartition("/")[2], kept[path], path_of)
        except (ValueError, TypeError, NotImplementedError) as error:
            reasons[path] = str(error)
    if reasons:
        listed = "; ".join(f"{path}: {reason}" for path, reason in reasons.items())
        raise NotRepresentableError(f"VirtualiZarr cannot carry {listed}; drop_variables leaves arrays out")
    return _assembled(group, arrays)


def _assembled(group: VirtualGroup, arrays: Mapping[str, ManifestArray], prefix: str = "") -> ManifestGroup:
    from virtualizarr.manifests import ManifestGroup  # noqa: PLC0415  an extra

    own = {name: arrays[prefix + name] for name in group.arrays if prefix + name in arrays}
    groups = {name: _assembled(inner, arrays, f"{prefix}{name}/") for name, inner in group.groups.items()}
    return ManifestGroup(own, groups, dict(group.metadata.attributes))


def _reason(array: VirtualArray) -> str | None:
    if has_variants(array):
        return "its chunks are encoded in different ways"
    if not isinstance(array.metadata.chunk_grid, RegularGrid):
        return "its chunk grid is rectilinear"
    if array.manifest.size > _MAX_CHUNKS:
        return f"its grid has {array.manifest.size} chunks, and VirtualiZarr keeps 32 bytes of each"
    return None


def _to_array(name: str, array: VirtualArray, path_of: UrlOf) -> ManifestArray:
    from virtualizarr.manifests import ManifestArray  # noqa: PLC0415  an extra
    from zarr.core.metadata.v3 import ArrayV3Metadata  # noqa: PLC0415  slow to import

    given = array.metadata.dimension_names or (None,) * len(array.shape)
    names = tuple(f"{name}_dim_{axis}" if given is None else given for axis, given in enumerate(given))
    metadata = replace(array.metadata, dimension_names=names, chunk_key_encoding=ChunkKeyEncoding())
    document = {member: value for member, value in metadata.to_json().items() if member != EXTENSION}
    return ManifestArray(
        ArrayV3Metadata.from_dict(cast("Any", document)), _to_manifest(array.manifest.loaded(), path_of)
    )


def _to_manifest(manifest: Manifest, path_of: UrlOf) -> ChunkManifest:
    from virtualizarr.manifests import ChunkManifest  # noqa: PLC0415
    from virtualizarr.manifests.manifest import INLINED_CHUNK_PATH  # noqa: PLC0415

    table = np.array([*map(path_of, manifest.urls), "", INLINED_CHUNK_PATH], np.dtypes.StringDType())
    url_id = np.array(np.minimum(manifest.url_id, np.uint32(len(manifest.urls))))
    length = np.array(manifest.length, np.uint64)
    for position, data in manifest.inline.items():
        url_id.reshape(-1)[position] = len(manifest.urls) + 1
        length.reshape(-1)[position] = len(data)
    inlined = {index_of(position, manifest.grid_shape): data for position, data in manifest.inline.items()}
    offset: NDArray[np.uint64] = np.array(manifest.offset, np.uint64)
    paths = cast("Any", np.array(table[url_id], table.dtype))
    return ChunkManifest.from_arrays(
        paths=paths,
        offsets=offset,
        lengths=length,
        validate_paths=False,
        inlined=inlined or None,
    )
