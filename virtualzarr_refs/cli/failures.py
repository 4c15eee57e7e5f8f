"""From exceptions to messages on the standard error stream and exit codes."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import click

from virtualzarr_refs.cli.output import clean
from virtualzarr_refs.errors import VirtualZarrError
from virtualzarr_refs.sources.redaction import redact

REFUSED = 1
"""Exit code: the data was refused, or a check found a difference."""

INTERRUPTED = 130
"""Exit code: the user pressed Ctrl-C; 128 and the number of the signal, as shells have it."""


class Failure(click.ClickException):
    """The end of a command, told in a few lines.

    Parameters
    ----------
    message : str
        What is wrong and what to do about it.
    place : mapping of str to object
        Where: what is None is not shown.
    """

    exit_code = REFUSED

    def __init__(self, message: str, place: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.place = {name: value for name, value in (place or {}).items() if value is not None}

    @classmethod
    def of(cls, error: VirtualZarrError, advice: str = "") -> Failure:
        """The failure that an error of the project's own makes; `advice` follows its message."""
        url = None if error.url is None else redact(error.url)
        place = {"file": url, "node": error.node, "feature": error.feature, "offset": error.offset}
        return cls(error.message + advice, place)

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the message to the standard error stream."""
        lines = [f"error: {self.message}", *(f"  {name}: {value}" for name, value in self.place.items())]
        for line in lines:
            click.echo(clean(line), file=file, err=True)


@contextmanager
def failures() -> Generator[None]:
    """Turn the exceptions that a command may end with into exit codes. A broken pipe is left to click."""
    try:
        yield
    except VirtualZarrError as error:
        raise Failure.of(error) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(error.strerror or str(error), {"file": error.filename}) from error
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None
