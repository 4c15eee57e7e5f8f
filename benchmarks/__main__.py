"""``python -m benchmarks``: make the files, run the suites, write the results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from benchmarks import open_meteo, read, remote, scan
from benchmarks.files import make_files
from benchmarks.report import Report, draw_chart
from benchmarks.rows import Row

SUITES: dict[str, Callable[[Path], Iterable[Row]]] = {
    "scan": scan.rows,
    "read": read.rows,
    "open-meteo": open_meteo.rows,
    "remote": remote.rows,
}


@click.command()
@click.argument("suites", nargs=-1, type=click.Choice(list(SUITES)))
@click.option("--files", type=click.Path(path_type=Path), default=Path("build/benchmarks"), show_default=True)
@click.option("--write", type=click.Path(path_type=Path), help="A folder for the page, the chart and the JSON.")
def main(suites: tuple[str, ...], files: Path, write: Path | None) -> None:
    """Run SUITES, or all of them."""
    warnings.simplefilter("ignore")
    make_files(files)
    report = Report.of(row for suite in suites or SUITES for row in SUITES[suite](files))
    report.print()
    if write is not None:
        write.mkdir(parents=True, exist_ok=True)
        (write / "benchmarks.json").write_text(report.to_json())
        (write / "benchmarks.md").write_text(report.to_markdown("benchmarks.svg"))
        draw_chart(report.rows, write)


if __name__ == "__main__":
    main()
