"""What is written to the terminal, or into a pipe."""

from __future__ import annotations

import io
import json
import sys
import warnings
from collections.abc import Generator, Iterable, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

from virtualzarr_refs.errors import SkippedNodeWarning
from virtualzarr_refs.sources.redaction import redact

if TYPE_CHECKING:
    from rich.console import Console

    from virtualzarr_refs.hierarchy import VirtualGroup

_PIPE_WIDTH = 1 << 16
"""Columns of a pipe: lines are not folded there."""


def clean(text: str) -> str:
    """The text with everything escaped that is no plain character: files may hold names that drive terminals."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(text: str) -> None:
    """Write a line to the standard output stream."""
    click.echo(clean(text))


def warn(text: str) -> None:
    """Write a line to the standard error stream."""
    click.echo(clean(text), err=True)


def say_json(document: object) -> None:
    """Write a JSON document."""
    click.echo(json.dumps(document, indent=2))


def console() -> Console:
    """The standard output stream; colours and the width of the window only where it is a terminal."""
    from rich.console import Console  # noqa: PLC0415  slow to import

    is_terminal = sys.stdout.isatty()
    width = None if is_terminal else _PIPE_WIDTH
    return Console(force_terminal=is_terminal, width=width, markup=False, highlight=False, emoji=False)


def escape_what_cannot_be_encoded() -> None:
    """Have the streams write names in scripts that the terminal's encoding lacks, as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def readable_warnings() -> Generator[None]:
    """Write warnings as plain lines; what a scan left out is told by the commands themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedNodeWarning)
        warnings.showwarning = _show_warning
        yield


def _show_warning(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001  what Python calls it with
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    warn(f"warning: {message}")


_UNIT = 1024


def in_bytes(count: int) -> str:
    """A number of bytes as people read it."""
    if count < _UNIT:
        return f"{count} B"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= _UNIT
        if size < _UNIT:
            return f"{size:.1f} {unit}"
    return f"{size / _UNIT:.1f} PiB"


def counted(count: int, noun: str) -> str:
    """A number and its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def contents(group: VirtualGroup) -> str:
    """How much a hierarchy holds."""
    manifests = [array.manifest for _, array in group.walk_arrays()]
    references = counted(sum(manifest.count for manifest in manifests), "reference")
    return f"{counted(len(manifests), 'array')}, {references}"


def warn_of_losses(url: str, group: VirtualGroup) -> None:
    """Tell what of a file was left out."""
    for record in group.skipped:
        if record.loses_data:
            warn(f"{redact(url)}: left out {record.path}: {record.reason}")


def tracked[T](work: Iterable[T], description: str, total: int | None = None) -> Iterable[T]:
    """The items of some work, with a bar on the standard error stream if that is a terminal.

    Parameters
    ----------
    work : iterable
        What is done.
    description : str
        One word for it.
    total : int, optional
        Number of items; needed where `work` has no length.
    """
    count = total if total is not None else len(work) if isinstance(work, Sized) else 0
    if count < 2 or not sys.stderr.isatty():
        return work
    from rich.console import Console  # noqa: PLC0415  slow to import
    from rich.progress import track  # noqa: PLC0415

    return track(work, description, total=count, console=Console(stderr=True), transient=True)
