"""``vzrefs shard``."""

from __future__ import annotations

from typing import Any

import click

from virtualzarr_refs.cli.options import allow_option, example, source_options
from virtualzarr_refs.cli.output import counted, say, warn
from virtualzarr_refs.cli.writing import write_set


@click.command(
    epilog=example(
        "vzrefs shard january.nc -o january.json",
        "vzrefs shard january.nc --embed -o copy.nc",
        "vzrefs shard january.nc --userblock --variable t2m -o copy.nc",
    )
)
@click.argument("target", metavar="REFS|FILE")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    help="The reference set (in JSON, or NAME.parq), or the copy, to write.",
)
@click.option("--embed", "where", flag_value="end", help="Copy FILE, and append the indexes of its arrays.")
@click.option("--userblock", "where", flag_value="start", help="Copy FILE, with the index of one array before it.")
@click.option("--variable", metavar="PATH", help="Which array, where --userblock needs to be told.")
@click.option(
    "--index-location",
    type=click.Choice(["end", "start"]),
    default="end",
    show_default=True,
    help="Where the indexes of shards stand, in a reference set.",
)
@click.option("--strict", is_flag=True, help="Refuse where an array has no shards, and chunks would stay references.")
@click.option("--overwrite", is_flag=True, help="Replace what is there.")
@allow_option
@source_options
def shard(target: str, output: str, where: str | None, variable: str | None, **options: Any) -> None:  # noqa: ANN401
    """Use files as shards: one reference for each array and file.

    Without --embed and --userblock a reference set is written. With them, FILE is a local HDF5 or NetCDF4 file, and a
    copy of it is written that has the indexes in it, and beside the copy a Zarr hierarchy of links to it, named like
    the copy but for .zarr: what reads sharded arrays of Zarr v3, in any language, reads it, also from a web server.
    Opening the copy for writing cuts off what was appended to it; "vzrefs check OUT.zarr" notices.
    """
    if variable is not None and where != "start":
        raise click.UsageError("--variable goes with --userblock")
    if where is None:
        _write_set(target, output, options)
    else:
        _write_copy(target, output, userblock=where == "start", variable=variable, overwrite=options["overwrite"])


def _write_set(target: str, output: str, options: dict[str, Any]) -> None:
    from virtualzarr_refs.references.recognition import open_hierarchy  # noqa: PLC0415  slow to import
    from virtualzarr_refs.shards import to_shards  # noqa: PLC0415

    reading = {name: options[name] for name in ("storage_options", "backend")}
    group = open_hierarchy(target, allow=options["allow"] or None, **reading)
    sharded = to_shards(group, index_location=options["index_location"], strict=options["strict"])
    write_set(sharded, output, overwrite=options["overwrite"], storage_options=options["storage_options"])
    for record in sharded.skipped[len(group.skipped) :]:
        warn(f"{record.path}: {record.reason}")
    shards = [array.manifest.count for _, array in sharded.walk_arrays() if array.manifest.has_shards]
    say(f"{output}: {counted(len(shards), 'array')} of {counted(sum(shards), 'shard')}")


def _write_copy(target: str, output: str, *, userblock: bool, variable: str | None, overwrite: bool) -> None:
    from virtualzarr_refs.embedding import embed  # noqa: PLC0415  slow to import

    written = embed(target, output, userblock=userblock, variable=variable, overwrite=overwrite)
    for record in written.left_out:
        if record.loses_data:
            warn(f"left out {record.path}: {record.reason}")
    shards, copied = counted(len(written.shards), "array"), counted(len(written.copied), "array")
    say(f"{written.hierarchy}: {shards} in {written.file}, {copied} copied")
