"""The ``gen`` member of a reference set: references that follow from ranges of numbers.

.. code-block:: json

    {"key": "x/{{i}}", "url": "{{u}}/{{i}}.bin", "offset": "{{(i + 1) * 1000}}", "length": "1000",
     "dimensions": {"i": {"stop": 5}}}
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.references.arithmetic import Expression, Value, parse_expression
from virtualzarr_refs.references.templates import MAX_URL, Templates, split_places

MAX_GENERATED = 1_000_000
"""References that the generators of one set may stand for; more is taken for an attack on memory."""

MAX_GENERATED_TEXT = 1 << 28
"""The same for the characters of their keys and urls."""

_DIGITS = 20
_PLAIN = (str, int)

type Generated = tuple[str, list[str | int]]


def generate(member: object, templates: Templates) -> Iterator[Generated]:
    """The references that the ``gen`` member of a reference set stands for.

    Parameters
    ----------
    member : object
        The parsed JSON.
    templates : Templates
        Whose names the generators may use.

    Yields
    ------
    key, reference
        ``[url]`` or ``[url, offset, length]``.

    Raises
    ------
    ReferenceSetError
        If a generator is malformed, stands for too many references, or needs more than arithmetic.
    """
    if not isinstance(member, Sequence) or isinstance(member, str):
        raise ReferenceSetError("the generators of references are not a JSON list")
    room, text = MAX_GENERATED, MAX_GENERATED_TEXT
    for generator in cast("Sequence[object]", member):
        axes = _parse_dimensions(generator)
        room -= _count(axes)
        if room < 0:
            raise ReferenceSetError(f"the generators stand for more than {MAX_GENERATED} references; write them out")
        for key, reference in _expand(cast("Mapping[str, object]", generator), axes, templates):
            text -= len(key) + len(cast("str", reference[0]))
            if text < 0:
                raise ReferenceSetError(f"the generators make more than {MAX_GENERATED_TEXT} characters of text")
            yield key, reference


def _expand(
    generator: Mapping[str, object], axes: Mapping[str, Sequence[Value]], templates: Templates
) -> Iterator[Generated]:
    names = {*axes, *templates.texts}
    key, url = _parse_text(generator, "key", names), _parse_text(generator, "url", names)
    numbers = [_parse_text(generator, name, names) for name in _range_members(generator)]
    for combination in itertools.product(*axes.values()):
        values = {**templates.texts, **dict(zip(axes, combination, strict=True))}
        yield _render(key, values), [_render(url, values), *(_render_number(number, values) for number in numbers)]


def _range_members(generator: Mapping[str, object]) -> tuple[str, ...]:
    present = tuple(name for name in ("offset", "length") if name in generator)
    if len(present) == 1:
        raise ReferenceSetError("a generator of references needs both an offset and a length, or neither")
    return present


def _parse_dimensions(generator: object) -> dict[str, Sequence[Value]]:
    dimensions = generator.get("dimensions") if isinstance(generator, Mapping) else None
    if not isinstance(dimensions, Mapping):
        raise ReferenceSetError(f"a generator of references without dimensions: {generator!r:.200}")
    return {name: _parse_axis(axis) for name, axis in cast("Mapping[str, object]", dimensions).items()}


def _parse_axis(axis: object) -> Sequence[Value]:
    if isinstance(axis, list) and all(type(value) in _PLAIN for value in cast("list[object]", axis)):
        return cast("list[Value]", axis)
    if isinstance(axis, Mapping):
        member = cast("Mapping[str, object]", axis)
        bounds = (member.get("start", 0), member.get("stop"), member.get("step", 1))
        if all(type(bound) is int for bound in bounds) and bounds[2] != 0:
            return range(*cast("tuple[int, int, int]", bounds))
    raise ReferenceSetError(f"a dimension of a generator is neither a list of values nor a range: {axis!r:.200}")


def _count(axes: Mapping[str, Sequence[Value]]) -> int:
    try:
        return math.prod(map(len, axes.values()))
    except OverflowError:  # a range longer than memory can be
        return MAX_GENERATED + 1


def _parse_text(generator: Mapping[str, object], member: str, names: set[str]) -> list[str | Expression]:
    text = generator.get(member)
    if type(text) not in _PLAIN:
        raise ReferenceSetError(f"a generator of references has no {member}: {generator!r:.200}")
    pieces = split_places(str(text))
    return [parse_expression(piece, names) if i % 2 else piece for i, piece in enumerate(pieces)]


def _render(pieces: list[str | Expression], values: Mapping[str, Value]) -> str:
    parts = [piece if isinstance(piece, str) else str(piece(values)) for piece in pieces]
    if sum(map(len, parts)) > MAX_URL:
        raise ReferenceSetError(f"a generator makes a text of more than {MAX_URL} characters")
    return "".join(parts)


def _render_number(pieces: list[str | Expression], values: Mapping[str, Value]) -> int:
    text = _render(pieces, values).strip()
    if not (text.isascii() and text.isdigit() and len(text) < _DIGITS):
        raise ReferenceSetError(f"a generator gives {text!r:.80} where an offset or a length is needed")
    return int(text)
