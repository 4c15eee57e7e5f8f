"""The rows as a table on the terminal, as JSON, as a chart and as a page of the documentation."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row

PACKAGES = ("virtualzarr-refs", "virtualizarr", "kerchunk", "zarr", "xarray", "h5py", "netCDF4", "numpy", "omfiles")
_VERDICTS = {True: "met", False: "missed", None: ""}


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of a run, and where it ran."""

    rows: tuple[Row, ...]
    machine: dict[str, str]
    versions: dict[str, str]
    date: str

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Report:
        """A report of this machine, today."""
        return cls(tuple(rows), _machine(), _versions(), datetime.now(UTC).date().isoformat())

    def to_json(self) -> str:
        """Everything, as a document."""
        facts: dict[str, Any] = {"date": self.date, "machine": self.machine, "versions": self.versions}
        return json.dumps(facts | {"rows": [row.to_json() for row in self.rows]}, indent=1) + "\n"

    def print(self) -> None:
        """The table, on the terminal."""
        table = Table(*_HEADINGS)
        for row in self.rows:
            table.add_row(*_cells(row))
        Console().print(table)

    def to_markdown(self, chart: str) -> str:
        """The page of results, with a chart beside it."""
        machine = ", ".join(f"{name}: {value}" for name, value in self.machine.items())
        versions = ", ".join(f"{name} {value}" for name, value in self.versions.items())
        notes = [f"- {row.suite}, {row.case}: {note}" for row in self.rows for note in row.notes]
        lines = [_INTRODUCTION, f"- Date: {self.date}", f"- Machine: {machine}", f"- Versions: {versions}", ""]
        lines += [f"![How many times longer the peers take]({chart})", "", *_markdown_table(self.rows)]
        return "\n".join([*lines, *(["", "Notes:", "", *notes] if notes else [])]) + "\n"


def draw_chart(rows: Sequence[Row], folder: Path) -> None:
    """Draw how many times longer each peer takes, as ``benchmarks.svg`` and ``benchmarks.png``."""
    import matplotlib as mpl  # noqa: PLC0415  slow to import, and the chart comes last

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "virtualzarr_refs"  # the same rows give the same file
    from matplotlib import pyplot as plt  # noqa: PLC0415

    bars = [(f"{row.suite}: {row.case}", peer, row.ratio(peer)) for row in rows for peer in row.peers]
    peers = sorted({peer for _, peer, _ in bars})
    figure, axes = plt.subplots(figsize=(9, 1 + 0.27 * len(bars)), layout="constrained")
    for place, (_, peer, ratio) in enumerate(bars):
        axes.barh(place, ratio, color=f"C{peers.index(peer)}", label=peer)
        axes.text(ratio, place, f" {ratio:.1f}", va="center", fontsize=8)
    axes.set(xscale="log", xlabel="times as long as virtualzarr_refs takes", yticks=range(len(bars)))
    axes.set_yticklabels([label for label, _, _ in bars], fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.invert_yaxis()
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.legend(handles.values(), handles.keys(), loc="lower right")
    figure.savefig(folder / "benchmarks.svg", metadata={"Date": None})
    figure.savefig(folder / "benchmarks.png", dpi=120)


_HEADINGS = ("what", "case", "ours", "peers, times ours", "target", "")
_INTRODUCTION = """# Benchmarks

`make bench` writes this page. Each peer that is installed does the same work in turn, in one process; the best of
several rounds counts. All results are compared before any time is taken: a time for other values is no result. "4.0 x"
means that the peer takes four times as long.
"""


def _cells(row: Row) -> tuple[str, ...]:
    ours = f"{row.ours * 1000:,.2f} ms" if row.unit == "s" else f"{row.ours:,.4g} {row.unit}"
    peers = ", ".join(f"{peer} {row.ratio(peer):.1f} x" for peer in row.peers)
    targets = [f"{peer} {target:.3g} x" for peer, target in row.ratios.items()]
    targets += [] if row.limit is None else [f"at most {row.limit:.4g} {row.unit}"]
    return row.suite, row.case, ours, peers, ", ".join(targets), _VERDICTS[row.is_met]


def _markdown_table(rows: Iterable[Row]) -> list[str]:
    lines = [_HEADINGS, ("---",) * len(_HEADINGS), *map(_cells, rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _machine() -> dict[str, str]:
    return {
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "processor": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def _versions() -> dict[str, str]:
    return {name: found for name in PACKAGES if (found := _version(name))}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
