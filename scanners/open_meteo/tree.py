"""The tree of variables, read level by level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from scanners.open_meteo.records import ArrayRecord, Scalar, Variable, parse_variable
from scanners.open_meteo.window import Window
from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.errors import FormatError, UnsupportedError

MAX_DEPTH = 64
"""Variables within each other; more are taken for a cycle."""

MIN_SIZE = 8
"""Bytes of the smallest variable."""


@dataclass(frozen=True, slots=True)
class Node:
    """A variable and those beneath it."""

    name: str
    content: ArrayRecord | Scalar | FormatError | UnsupportedError | None
    children: tuple[Node, ...] = ()

    @property
    def scalar(self) -> Scalar | None:
        """The value of a variable that is one."""
        return self.content if isinstance(self.content, str | np.generic) else None

    def values(self) -> Iterator[Node]:
        """The children that are single values."""
        return (child for child in self.children if child.scalar is not None)

    def members(self) -> Iterator[Node]:
        """The children that are not, each followed by those within it, if it is an array: Zarr has no such nesting."""
        for child in self.children:
            if child.scalar is None:
                yield child
                if child.content is not None:
                    yield from child.members()


def read_tree(window: Window, root: ByteRange) -> Node:
    """Read the tree beneath a variable.

    Raises
    ------
    FormatError
        If a variable is damaged, lies outside the file, or within itself.
    """
    reading = _Reading(window, window.size // MIN_SIZE)
    return reading.node(parse_variable(window.read([root])[0]), 0)


@dataclass(slots=True)
class _Reading:
    """Counts variables: children may be shared, but a damaged file could hold more of them than can be walked."""

    window: Window
    left: int
    seen: dict[ByteRange, Variable] = field(default_factory=dict[ByteRange, Variable])

    def node(self, variable: Variable, depth: int) -> Node:
        self.left -= len(variable.children)
        if depth > MAX_DEPTH or self.left < 0:
            raise FormatError("the variables are too many or lie within themselves")
        fresh = [place for place in dict.fromkeys(variable.children) if place not in self.seen]
        self.seen |= zip(fresh, map(parse_variable, self.window.read(fresh)), strict=True)
        children = (self.node(self.seen[place], depth + 1) for place in variable.children)
        return Node(variable.name, variable.content, tuple(children))
