"""Options that several commands have, and how their values are read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, cast

import click

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"(\d+) *([A-Za-z]*)")


def as_json_object(_context: click.Context, _option: click.Parameter, value: str | None) -> dict[str, Any] | None:
    """Read a JSON object. Raises click.BadParameter."""
    if value is None:
        return None
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise click.BadParameter(f"this is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise click.BadParameter('this is not a JSON object, such as {"anon": true}')
    return cast("dict[str, Any]", parsed)


def as_bytes(_context: click.Context, _option: click.Parameter, value: str) -> int:
    """Read a number of bytes, such as ``1000000`` or ``64MiB``. Raises click.BadParameter."""
    match = _SIZE.fullmatch(value)
    if match is None or match[2].lower() not in _UNITS:
        raise click.BadParameter(f"{value!r} is not a number of bytes, such as 1000000 or 64MiB")
    return int(match[1]) * _UNITS[match[2].lower()]


def example(*lines: str) -> str:
    """The end of a command's help. A backspace keeps click from joining the lines."""
    return "\n".join(("\b", "Example:", *(f"  {line}" for line in lines)))


def source_options[F: Callable[..., Any]](command: F) -> F:
    """Add the options that say how files are read."""
    for option in reversed(_SOURCE_OPTIONS):
        command = option(command)
    return command


storage_options_option = click.option(
    "--storage-options",
    callback=as_json_object,
    metavar="JSON",
    help="Options of the filesystem, such as '{\"anon\": true}'. They are never written to a reference set.",
)

_SOURCE_OPTIONS = (
    storage_options_option,
    click.option(
        "--backend",
        type=click.Choice(["auto", "local", "fsspec", "obstore"]),
        default="auto",
        show_default=True,
        help="What reads the bytes.",
    ),
)

inline_threshold_option = click.option(
    "--inline-threshold",
    callback=as_bytes,
    metavar="BYTES",
    default="1MiB",
    show_default=True,
    help="Values that are no byte range go to a folder beside the set if an array has more of them than this.",
)

allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="URL",
    help="Folder or url that references may point to; may be given several times. A reference set that came over "
    "a network may otherwise not point to this machine.",
)
