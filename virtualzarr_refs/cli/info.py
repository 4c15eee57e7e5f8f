"""``vzrefs info``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import click

from virtualzarr_refs.cli.options import allow_option, example, source_options
from virtualzarr_refs.cli.output import clean, console, counted, in_bytes, say, say_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.tree import Tree

    from virtualzarr_refs.cli.description import ArrayDescription, Description, ReferenceCounts

_MAX_SOURCES = 20
"""Sources that are listed as text; JSON has all."""

_MAX_RUNS = 8
"""Runs of equal chunk lengths that are listed as text."""


@click.command(
    epilog=example(
        "vzrefs info january.json",
        "vzrefs info january.nc --json",
    )
)
@click.argument("target", metavar="REFS|FILE")
@click.option("--json", "as_json", is_flag=True, help="Write everything as JSON.")
@allow_option
@source_options
def info(target: str, *, as_json: bool, allow: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401
    """Show what a reference set or a file holds.

    That is groups, arrays, chunk grids, codecs, sizes, numbers of references, the files that they point into, what
    was left out and why, and which values were read when the file was scanned. No chunk is read.
    """
    from virtualzarr_refs.cli.description import Description  # noqa: PLC0415  slow to import
    from virtualzarr_refs.references.recognition import is_reference_set, open_hierarchy  # noqa: PLC0415

    group = open_hierarchy(target, allow=allow or None, **options)
    kind = "reference set" if is_reference_set(target) else "file"
    description = Description.of(target, kind, group)
    if as_json:
        say_json(description.to_json())
    else:
        _tell(description)


def _tell(description: Description) -> None:
    screen = console()
    screen.print(_tree(description))
    _list(screen, "sources", _source_lines(description))
    materialised = ((array.path, array.materialised) for array in description.arrays if array.materialised)
    _list(screen, "read when scanned", (f"{path}: {why}" for path, why in materialised))
    lost = [record for record in description.skipped if record.loses_data]
    _list(screen, "left out", (f"{record.path}: {record.reason}" for record in lost))
    others = (record for record in description.skipped if not record.loses_data)
    _list(screen, "not shown, without data of their own", (f"{record.path}: {record.reason}" for record in others))
    nodes = f"{counted(len(description.arrays), 'array')} in {counted(len(description.groups), 'group')}"
    references = _references(description.references)
    say(f"total: {nodes}; {references}; {_sizes(description.stored_bytes, description.logical_bytes)}")


def _list(screen: Console, title: str, lines: Iterable[str]) -> None:
    listed = list(lines)
    if listed:
        screen.print(f"{title}:", style="bold")
    for line in listed:
        say(f"  {line}")


def _source_lines(description: Description) -> Iterator[str]:
    for source in description.sources[:_MAX_SOURCES]:
        yield f"{source.url}: {counted(source.references, 'reference')}, {in_bytes(source.stored_bytes)}"
    more = len(description.sources) - _MAX_SOURCES
    if more > 0:
        yield f"and {more} more; --json lists all"


def _tree(description: Description) -> Tree:
    """Groups and arrays, each beneath the group that holds it."""
    from rich.text import Text  # noqa: PLC0415  slow to import
    from rich.tree import Tree  # noqa: PLC0415

    root = Tree(Text(clean(f"{description.url} ({description.kind})"), "bold"))
    branches: dict[str, Tree] = {"": root}
    for path in description.groups[1:]:
        parent, _, name = path.rpartition("/")
        branches[path] = branches[parent].add(Text(clean(f"{name}/"), "bold blue"))
    for array in description.arrays:
        parent, _, name = array.path.rpartition("/")
        label = Text(clean(name), "bold green")
        label.append(clean(f"  {array.dtype}  {_axes(array)}"), "default not bold")
        label.append("".join(f"\n  {clean(line)}" for line in _array_lines(array)), "default not bold")
        branches[parent].add(label)
    return root


def _axes(array: ArrayDescription) -> str:
    names = zip(array.dimensions, array.shape, strict=True)
    return f"({', '.join(f'{name}: {size}' if name else str(size) for name, size in names)})"


def _array_lines(array: ArrayDescription) -> Iterator[str]:
    yield _chunks(array)
    yield f"codecs {', '.join(map(_codec, array.codecs))}"
    yield f"{_references(array.references)}; {_sizes(array.stored_bytes, array.logical_bytes)}"


def _chunks(array: ArrayDescription) -> str:
    configuration = cast("dict[str, list[Any]]", array.chunk_grid["configuration"])
    lengths = configuration.get("chunk_shape") or configuration.get("chunk_shapes") or []
    count = " x ".join(map(str, array.grid_shape)) or "1"
    return f"{count} {array.chunk_grid['name']} chunks of ({', '.join(map(_edge, lengths))})"


def _edge(lengths: int | list[int | list[int]]) -> str:
    """The chunk lengths along one axis: of all chunks, or of each, with runs of equal ones counted."""
    if isinstance(lengths, int):
        return str(lengths)
    runs = [str(run) if isinstance(run, int) else f"{run[1]}*{run[0]}" for run in lengths[:_MAX_RUNS]]
    return f"[{', '.join(runs)}{', ...' if len(lengths) > _MAX_RUNS else ''}]"


def _codec(codec: dict[str, Any]) -> str:
    variants = cast("list[object]", codec.get("configuration", {}).get("variants", []))
    return f"{codec['name']} of {counted(len(variants), 'variant')}" if variants else codec["name"]


def _references(counts: ReferenceCounts) -> str:
    return f"references: {counts.virtual} virtual, {counts.inline} inline, {counts.missing} missing"


def _sizes(stored: int, logical: int | None) -> str:
    values = "values of variable length" if logical is None else f"{in_bytes(logical)} of values"
    return f"{in_bytes(stored)} stored, {values}"
