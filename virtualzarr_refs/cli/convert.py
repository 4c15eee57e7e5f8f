"""``vzrefs convert``."""

from __future__ import annotations

from typing import Any

import click

from virtualzarr_refs.cli.options import allow_option, example, storage_options_option
from virtualzarr_refs.cli.output import contents, say
from virtualzarr_refs.cli.writing import write_set
from virtualzarr_refs.sources.redaction import redact


@click.command(
    epilog=example(
        "vzrefs convert year.json year.parq",
        "vzrefs convert year.parq kerchunk.parq --zarr-format 2",
    )
)
@click.argument("source", metavar="REFS")
@click.argument("output", metavar="OUT")
@click.option(
    "--zarr-format",
    type=click.Choice(["2", "3"]),
    default="3",
    show_default=True,
    help="Zarr format of the new set; 2 is kerchunk's, for old readers, and cannot carry every set.",
)
@click.option("--overwrite", is_flag=True, help="Replace a set that is there.")
@click.option(
    "--materialise",
    type=click.Choice(["inline", "sidecar"]),
    help="Encode an array's chunks in one way, for other readers, where the set has several; and where to keep those "
    "that have to be encoded anew.",
)
@allow_option
@storage_options_option
def convert(source: str, output: str, *, zarr_format: str, allow: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401
    """Write a reference set in another form.

    The name of OUT says which: .json, also with .gz or .zst; .parq or .parquet. REFS is a set of any kind. No file that
    it points to is read, but with --materialise.
    """
    from virtualzarr_refs.references import open_refs  # noqa: PLC0415  slow to import

    group = open_refs(source, allow=allow or None, storage_options=options["storage_options"])
    write_set(group, output, zarr_format=int(zarr_format), **options)
    say(f"{redact(output)}: {contents(group)} of {redact(source)}")
