"""The scanner for Open-Meteo's ``.om`` files."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from scanners.open_meteo.arrays import build_array
from scanners.open_meteo.records import HEADER, MAGIC, ArrayRecord, parse_header, parse_trailer
from scanners.open_meteo.tree import Node, read_tree
from scanners.open_meteo.truth import OpenMeteoTruth, open_omfiles
from scanners.open_meteo.window import Window
from virtualzarr_refs.attributes import encode_attributes
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import FormatError, UnsupportedError
from virtualzarr_refs.hierarchy import VirtualArray, VirtualGroup, is_node_name
from virtualzarr_refs.metadata import GroupMetadata
from virtualzarr_refs.scanning import ScanOptions
from virtualzarr_refs.skip_log import SkipLog
from virtualzarr_refs.sources import Source

NAMELESS = "data"
"""The name of an array that is the whole of its file and has none of its own."""


@dataclass(frozen=True, slots=True)
class OpenMeteoScanner:
    """Reads ``.om`` files of versions 1, 2 and 3."""

    name: str = "open_meteo"

    def recognises(self, head: bytes, url: str) -> bool:  # noqa: ARG002  the url tells nothing more
        """Whether `head` begins with the signature and a version that is known."""
        return head[:2] == MAGIC and head[2:3] in (b"\x01", b"\x02", b"\x03")

    def scan(self, source: Source, options: ScanOptions) -> VirtualGroup:
        """Read the layout of a whole file.

        Raises
        ------
        FormatError
            If the tree of its variables cannot be read.
        VirtualZarrError
            Where `options.strict`, if any array cannot be shown.
        """
        window = Window.of(source)
        skips = SkipLog(options.strict, options.doubts)
        group = _Build(window, skips).group(read_root(window), "")
        return replace(group, metadata=replace(group.metadata, skipped=tuple(skips.records)))

    @contextmanager
    def open_truth(self, source: Source) -> Generator[OpenMeteoTruth]:
        """Open a file for comparison with what omfiles reads.

        Raises
        ------
        UnsupportedError
            If omfiles is not installed.
        FormatError
            If the library cannot open the file.
        """
        with open_omfiles(source) as reader:
            yield OpenMeteoTruth(reader, NAMELESS)


def read_root(window: Window) -> Node:
    """The root of the tree as a group; where it is an array, that is all that the group holds.

    Raises
    ------
    FormatError
        If the file is damaged.
    UnsupportedError
        If it is of version 2 and its compression is not known.
    """
    place = parse_trailer(window.tail)
    if place is not None:
        root = read_tree(window, place)
    else:
        head = ByteRange(0, min(HEADER.itemsize, window.size))
        root = Node(NAMELESS, parse_header(window.read([head])[0]))
    if root.content is None:
        return root
    return Node("", None, (replace(root, name=root.name or NAMELESS),))


@dataclass(frozen=True, slots=True)
class _Build:
    """Turns nodes into groups and arrays."""

    window: Window
    skips: SkipLog

    def group(self, node: Node, path: str) -> VirtualGroup:
        attributes, types = encode_attributes(self._attributes(node, path))
        arrays: dict[str, VirtualArray] = {}
        groups: dict[str, VirtualGroup] = {}
        for child in node.members():
            place = f"{path}/{child.name}".lstrip("/")
            with self.skips.node(place or "/"):
                _check_name(child.name, (*arrays, *groups))
                if child.content is None:
                    groups[child.name] = self.group(child, place)
                else:
                    arrays[child.name] = self._array(child, place)
        return VirtualGroup(GroupMetadata(attributes, types), _with_fitting_names(arrays), groups)

    def _array(self, node: Node, path: str) -> VirtualArray:
        if not isinstance(node.content, ArrayRecord):
            raise _as_error(node.content)
        return build_array(self.window, node.content, self._attributes(node, path))

    def _attributes(self, node: Node, path: str) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        for child in node.values():
            place = f"{path}@{child.name}"
            with self.skips.node(place):
                if not child.name or child.name in attributes:
                    raise UnsupportedError("an attribute has no name, or that of another one")
                attributes[child.name] = child.scalar
            if child.children:
                with self.skips.node(place):
                    raise UnsupportedError("what lies within an attribute has no place in Zarr")
        return attributes


def _check_name(name: str, taken: Iterable[str]) -> None:
    if not is_node_name(name):
        raise UnsupportedError(f"the name {name!r} cannot be that of a Zarr node")
    if name in taken:
        raise UnsupportedError(f"another variable here has the name {name!r}")


def _as_error(content: object) -> FormatError | UnsupportedError:
    is_error = isinstance(content, FormatError | UnsupportedError)
    return content if is_error else UnsupportedError("this is neither an array nor a group")


def _with_fitting_names(arrays: Mapping[str, VirtualArray]) -> dict[str, VirtualArray]:
    """The arrays, without dimension names that stand for another length in an earlier one: xarray would refuse all."""
    lengths: dict[str, int] = {}
    fitting: dict[str, VirtualArray] = {}
    for name, array in arrays.items():
        mine = dict(zip(map(str, array.metadata.dimension_names or ()), array.shape, strict=False))
        if any(lengths.get(dimension, n) != n for dimension, n in mine.items()):
            fitting[name] = replace(array, metadata=replace(array.metadata, dimension_names=None))
        else:
            lengths |= mine
            fitting[name] = array
    return fitting
