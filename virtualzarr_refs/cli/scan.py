"""``vzrefs scan``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import click

from virtualzarr_refs.cli.failures import REFUSED, Failure
from virtualzarr_refs.cli.jobs import Job, Plan, refuse_to_replace
from virtualzarr_refs.cli.options import as_bytes, example, inline_threshold_option, source_options
from virtualzarr_refs.cli.output import contents, in_bytes, say, tracked, warn_of_losses
from virtualzarr_refs.cli.writing import write_set
from virtualzarr_refs.errors import VirtualZarrError
from virtualzarr_refs.sources import Backend
from virtualzarr_refs.sources.redaction import redact

if TYPE_CHECKING:
    from virtualzarr_refs.hierarchy import VirtualGroup


@click.command(
    epilog=example(
        "vzrefs scan january.nc -o january.json",
        "vzrefs scan archive/*.nc -o references/",
        "vzrefs scan s3://bucket/january.nc -o january.json --storage-options '{\"anon\": true}'",
    )
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    help="The reference set to write, .json or .parq; for several FILEs, the folder for a set each, NAME.json.",
)
@click.option("--strict", is_flag=True, help="Refuse a FILE of which anything would have to be left out.")
@click.option(
    "--zarr-format",
    type=click.Choice(["2", "3"]),
    default="3",
    show_default=True,
    help="Zarr format of the set; 2 is for old readers, and cannot carry every file.",
)
@click.option("--overwrite", is_flag=True, help="Replace sets that are there.")
@inline_threshold_option
@click.option(
    "--materialise",
    type=click.Choice(["inline", "sidecar"]),
    help="Encode an array's chunks in one way, for other readers, where the file has several; and where to keep "
    "those that have to be encoded anew.",
)
@click.option(
    "--materialise-limit",
    callback=as_bytes,
    metavar="BYTES",
    default="256MiB",
    show_default=True,
    help="An array whose values are no byte range is left out if they are more than this.",
)
@click.option(
    "--cache",
    metavar="FOLDER",
    help="Keep what is found there, and use what was found before while a FILE stays the same; 'sidecar' keeps it in "
    "a file NAME.vzmeta beside each FILE.",
)
@source_options
@click.pass_context
def scan(ctx: click.Context, /, files: tuple[str, ...], output: str, zarr_format: str, **options: Any) -> None:  # noqa: ANN401
    """Write a reference set for each file.

    FILE is a path or any fsspec url. What a set leaves out is listed on the standard error stream. Where one of several
    FILEs is refused, the others are written all the same, and the exit code is 1.
    """
    settings = _Settings(3 if zarr_format == "3" else 2, **options)
    plan = Plan.of(files, output)
    refuse_to_replace(plan.jobs, settings.storage_options, overwrite=settings.overwrite)
    plan.make_folder()
    results = [_run(job, settings) for job in tracked(plan.jobs, "scanning")]
    if not all(results):
        ctx.exit(REFUSED)


@dataclass(frozen=True, slots=True)
class _Settings:
    """The options of the command."""

    zarr_format: Literal[2, 3]
    strict: bool
    overwrite: bool
    inline_threshold: int
    materialise: Literal["inline", "sidecar"] | None
    materialise_limit: int
    cache: str | None
    backend: Backend
    storage_options: dict[str, Any] | None = field(repr=False)

    def scan(self, url: str) -> VirtualGroup:
        from virtualzarr_refs.scanning import scan as scan_file  # noqa: PLC0415  slow to import

        return scan_file(
            url,
            strict=self.strict,
            materialise_limit=self.materialise_limit,
            storage_options=self.storage_options,
            backend=self.backend,
            cache=self.cache,
        )

    def write(self, group: VirtualGroup, url: str) -> None:
        write_set(
            group,
            url,
            zarr_format=self.zarr_format,
            overwrite=self.overwrite,
            inline_threshold=self.inline_threshold,
            materialise=self.materialise,
            storage_options=self.storage_options,
        )


def _run(job: Job, settings: _Settings) -> bool:
    """Scan one file and write its set; False if it was refused."""
    try:
        group = settings.scan(job.file)
        settings.write(group, job.output)
    except VirtualZarrError as error:
        is_one_node = settings.strict and error.node is not None
        Failure.of(error.at(url=job.file), "; without --strict it would be left out" if is_one_node else "").show()
        return False
    warn_of_losses(job.file, group)
    stored = in_bytes(sum(array.manifest.nbytes for _, array in group.walk_arrays()))
    say(f"{redact(job.output)}: {contents(group)}, {stored} of {redact(job.file)}")
    return True
