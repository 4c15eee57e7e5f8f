"""The program and its commands."""

from __future__ import annotations

import click

from virtualzarr_refs import __version__
from virtualzarr_refs.cli.check import check
from virtualzarr_refs.cli.concat import concat
from virtualzarr_refs.cli.convert import convert
from virtualzarr_refs.cli.failures import failures
from virtualzarr_refs.cli.info import info
from virtualzarr_refs.cli.options import example
from virtualzarr_refs.cli.output import escape_what_cannot_be_encoded, readable_warnings
from virtualzarr_refs.cli.scan import scan
from virtualzarr_refs.cli.serve import serve
from virtualzarr_refs.cli.shard import shard


class Program(click.Group):
    """Commands whose failures end in a message and an exit code, never in a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that was given."""
        escape_what_cannot_be_encoded()
        with readable_warnings(), failures():
            return super().invoke(ctx)


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=example(
        "vzrefs scan january.nc -o january.json",
        "vzrefs concat 'archive/*.nc' --dim time -o archive.json",
        "vzrefs info january.json",
        "vzrefs check january.json",
    ),
)
@click.version_option(__version__, prog_name="vzrefs")
def main() -> None:
    """Index the chunks of HDF5 and NetCDF archives, so that they open as Zarr.

    Exit codes: 0; 1, the data was refused or the check found a difference; 2, wrong usage.
    """


for _command in (scan, concat, convert, shard, info, check, serve):
    main.add_command(_command)
