"""``vzrefs concat``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import click

from virtualzarr_refs.cli.failures import REFUSED, Failure
from virtualzarr_refs.cli.jobs import Job, refuse_to_replace
from virtualzarr_refs.cli.options import example, inline_threshold_option, source_options
from virtualzarr_refs.cli.output import contents, counted, say, tracked, warn, warn_of_losses
from virtualzarr_refs.cli.patterns import expanded
from virtualzarr_refs.cli.writing import write_set
from virtualzarr_refs.errors import IncompatibleError
from virtualzarr_refs.sources.redaction import redact

if TYPE_CHECKING:
    from virtualzarr_refs.combine import Comparison
    from virtualzarr_refs.hierarchy import VirtualGroup

_CHOICES = {
    "overlap": (["error", "first", "last"], "Whose values to keep where files overlap along the dimension."),
    "compat": (
        ["equals", "identical", "no_conflicts", "override"],
        "How variables without the dimension are compared; override takes those of the first FILE.",
    ),
    "join": (["exact", "override"], "Whether other coordinates have to be equal, or are taken from the first FILE."),
    "combine-attrs": (
        ["override", "drop", "identical", "no_conflicts", "drop_conflicts"],
        "What becomes of attributes; override takes those of the first FILE.",
    ),
}


def _choices[F: Any](command: F) -> F:
    for name, (words, text) in reversed(_CHOICES.items()):
        option = click.option(f"--{name}", type=click.Choice(words), default=words[0], show_default=True, help=text)
        command = option(command)
    return command


@click.command(
    epilog=example(
        "vzrefs concat 'archive/*.nc' --dim time -o archive.json",
        "vzrefs concat 'archive/*.nc' --dim time --dry-run",
        "vzrefs concat control.json forced.json --dim run --new -o runs.json",
    )
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--dim", required=True, help="The dimension along which files are put one after the other.")
@click.option("--new", is_flag=True, help="Files lack the dimension, and each is one element along it.")
@click.option("-o", "--output", metavar="OUT", help="The reference set to write.")
@click.option("--dry-run", is_flag=True, help="Only tell, variable by variable, what would become of the files.")
@click.option("--drop", metavar="NAME", multiple=True, help="Leave a variable out; may be given several times.")
@click.option(
    "--only",
    metavar="NAME",
    multiple=True,
    help="Leave out all others, but for coordinates; may be given several times.",
)
@click.option("--sort", is_flag=True, help="Put the files in order of their coordinate along the dimension.")
@_choices
@click.option("--strict", is_flag=True, help="Refuse a FILE of which anything would have to be left out.")
@click.option("--overwrite", is_flag=True, help="Replace a set that is there.")
@inline_threshold_option
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Processes that scan; by default one for few files.")
@source_options
@click.pass_context
def concat(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    output: str | None,
    *,
    dry_run: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Put files or reference sets one after the other along a dimension, and write one set.

    FILE is a path, a url or a pattern such as 'data/*.nc', whose files are put in the order of their names, numbers by
    their value. Nothing is written unless every variable of every file can be carried; what stands in the way is told,
    variable by variable, and the exit code is 1.
    """
    if output is None and not dry_run:
        raise click.UsageError("say where to write with -o OUT, or ask for a --dry-run")
    settings = _Settings(**options)
    urls = expanded(files, settings.storage_options)
    if output is not None:
        refuse_to_replace([Job(urls[0], output)], settings.storage_options, overwrite=settings.overwrite)
    groups = settings.opened(urls)
    if output is None or dry_run:
        comparison = settings.compare(groups)
        say_comparison(comparison)
        ctx.exit(0 if comparison.is_compatible else REFUSED)
    whole = settings.combine(groups)
    settings.write(whole, output)
    say(f"{redact(output)}: {counted(len(urls), 'file')}, {contents(whole)}")


def say_comparison(comparison: Comparison, *, only_refused: bool = False) -> None:
    """Write what was found of every variable, as a table."""
    write = warn if only_refused else say
    for line in comparison.table(only_refused=only_refused):
        write(line)


@dataclass(frozen=True, slots=True)
class _Settings:
    """The options of the command."""

    dim: str
    new: bool
    drop: tuple[str, ...]
    only: tuple[str, ...]
    sort: bool
    overlap: str
    compat: str
    join: str
    combine_attrs: str
    strict: bool
    overwrite: bool
    inline_threshold: int
    jobs: int | None
    backend: str
    storage_options: dict[str, Any] | None = field(repr=False)

    def opened(self, urls: Sequence[str]) -> list[VirtualGroup]:
        one = partial(_open, backend=self.backend, storage_options=self.storage_options, strict=self.strict)
        with self._executor(len(urls)) as executor:
            results = map(one, urls) if executor is None else executor.map(one, urls, chunksize=4)
            groups = list(tracked(results, "scanning", len(urls)))
        for url, group in zip(urls, groups, strict=True):
            warn_of_losses(url, group)
        return [self._chosen(group) for group in groups]

    def _executor(self, count: int) -> AbstractContextManager[Executor | None]:
        jobs = self.jobs or (os.cpu_count() or 1 if count > _MANY else 1)
        if jobs == 1:
            return nullcontext()
        return ProcessPoolExecutor(jobs, get_context("spawn"))

    def _chosen(self, group: VirtualGroup) -> VirtualGroup:
        from virtualzarr_refs.combine import drop_vars, keep_vars  # noqa: PLC0415  slow to import

        kept = keep_vars(group, self.only, errors="ignore") if self.only else group
        return drop_vars(kept, self.drop, errors="ignore")

    @property
    def _options(self) -> dict[str, Any]:
        names = ("sort", "overlap", "compat", "join", "combine_attrs", "storage_options")
        return {name: getattr(self, name) for name in names}

    def compare(self, groups: Sequence[VirtualGroup]) -> Comparison:
        from virtualzarr_refs.combine import compare  # noqa: PLC0415  slow to import

        self._check_names(groups)
        return compare(groups, self.dim, **self._options)

    def combine(self, groups: Sequence[VirtualGroup]) -> VirtualGroup:
        from virtualzarr_refs.combine import Comparison, concat, stack  # noqa: PLC0415  slow to import

        self._check_names(groups)
        try:
            return (stack if self.new else concat)(groups, self.dim, **self._options)
        except IncompatibleError as error:
            if not isinstance(error.comparison, Comparison):
                raise
            say_comparison(error.comparison, only_refused=True)
            raise Failure(f"the files cannot be put together along {self.dim!r}; nothing was written") from error

    def _check_names(self, groups: Sequence[VirtualGroup]) -> None:
        """Refuse a name that --only asks for and no file has; --drop may name what some files lack."""
        from virtualzarr_refs.combine.variables import known_names  # noqa: PLC0415  slow to import

        known = known_names(groups)
        missing = [name for name in self.only if name not in known]
        if missing:
            raise click.BadParameter(f"no file has the variable {missing[0]!r}", param_hint="--only")

    def write(self, group: VirtualGroup, url: str) -> None:
        write_set(
            group,
            url,
            overwrite=self.overwrite,
            inline_threshold=self.inline_threshold,
            storage_options=self.storage_options,
        )


_MANY = 32
"""Files from which on it pays to start processes that scan."""


def _open(url: str, *, backend: Any, storage_options: dict[str, Any] | None, strict: bool) -> VirtualGroup:  # noqa: ANN401
    from virtualzarr_refs.references.recognition import open_hierarchy  # noqa: PLC0415  slow to import

    return open_hierarchy(url, storage_options=storage_options, backend=backend, strict=strict)
