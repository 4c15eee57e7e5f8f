"""``vzrefs check``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from virtualzarr_refs.cli.failures import Failure
from virtualzarr_refs.cli.options import allow_option, example, source_options
from virtualzarr_refs.cli.output import clean, console, counted, say, say_json

if TYPE_CHECKING:
    from rich.console import Console

    from virtualzarr_refs.checking import ArrayReport, CheckReport


@click.command(
    epilog=example(
        "vzrefs check january.json",
        "vzrefs check january.json --sample 10",
    )
)
@click.argument("refs", metavar="REFS")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Read only N chunks of each array, drawn at random; byte ranges are checked for all.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the drawing.")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON.")
@allow_option
@source_options
def check(refs: str, *, as_json: bool, allow: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401
    """Compare a reference set with its files.

    Every chunk is read through the set, and with the format's own library, and compared bit for bit. REFS is a path
    or url of a reference set; or of a file, which is scanned first. The exit code is 1 if anything differs, is
    missing, or cannot be decoded.
    """
    from virtualzarr_refs.checking import check as check_set  # noqa: PLC0415  slow to import

    report = check_set(refs, allow=allow or None, **options)
    if as_json:
        say_json(report.to_json())
    else:
        _tell(report)
    if not report.ok:
        raise Failure(_summary(report))


def _tell(report: CheckReport) -> None:
    """Write a line for each array, and one for all."""
    screen = console()
    for array in report.arrays:
        status = _status(array)
        for detail in _details(array):
            _line(screen, status, f"{array.path}: {detail}")
    for source in report.sources:
        if source.error:
            _line(screen, "missing", f"{source.url}: {source.error}")
    for record in report.skipped:
        if record.loses_data:
            _line(screen, "left out", f"{record.path}: {record.reason}")
    statuses = Counter(map(_status, report.arrays))
    found = ", ".join(f"{count} {status}" for status, count in statuses.items())
    say(f"{counted(len(report.arrays), 'array')}: {found or 'nothing to check'}")


def _line(screen: Console, status: str, text: str) -> None:
    from rich.text import Text  # noqa: PLC0415  slow to import

    style = _STYLES.get(status, "bold red")
    screen.print(Text.assemble((f"{status:<13} ", style), clean(text)), soft_wrap=True)


_STYLES = {"equal": "green", "left out": "yellow", "not compared": "yellow"}


def _status(array: ArrayReport) -> str:
    """What is said of an array, in a word or two."""
    if array.different:
        return "different"
    if array.undecodable:
        return "unreadable"
    if array.errors:
        return "wrong"
    return "not compared" if array.not_compared else "equal"


def _details(array: ArrayReport) -> Iterator[str]:
    if not array.ok:
        yield from array.problems
    elif array.not_compared:
        yield f"{array.not_compared} of {counted(array.chunks, 'chunk')} can be decoded; {array.reason}"
    else:
        yield f"{array.equal} of {counted(array.chunks, 'chunk')}"


def _summary(report: CheckReport) -> str:
    bad = sum(not array.ok for array in report.arrays)
    what = f"{bad} of {counted(len(report.arrays), 'array')} cannot be confirmed"
    return f"{what}; first {report.problems[0]}; if the files are as they should be, scan them again"
