"""Which files ``vzrefs scan`` reads, and where it writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import click


@dataclass(frozen=True, slots=True)
class Job:
    """A file to scan.

    Parameters
    ----------
    file : str
        Path or url of the file.
    output : str
        Path or url of its reference set.
    """

    file: str
    output: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Which files to scan.

    Parameters
    ----------
    jobs : tuple of Job
        In the order given.
    folder : str, optional
        Local folder that they are written to, which need not be there.
    """

    jobs: tuple[Job, ...]
    folder: str | None = None

    @classmethod
    def of(cls, files: Sequence[str], output: str) -> Plan:
        """Decide where the set of each file goes.

        Parameters
        ----------
        files : sequence of str
            At least one.
        output : str
            A folder, where there are several files, it ends with a slash, or it is there already; else a set.

        Raises
        ------
        click.UsageError
            If two files would be written to one place, or `output` has to be a folder and cannot be one.
        """
        from virtualzarr_refs.references.recognition import is_parquet_name  # noqa: PLC0415  slow to import
        from virtualzarr_refs.references.urls import name_of  # noqa: PLC0415
        from virtualzarr_refs.sources.location import join, local_path  # noqa: PLC0415

        folder = local_path(output)
        is_folder = output.endswith("/") or bool(folder and Path(folder).is_dir())
        if len(files) == 1 and (is_parquet_name(output) or not is_folder):
            return cls((Job(files[0], output),))
        _require_folder(output, folder)
        jobs = tuple(Job(file, join(output, f"{PurePosixPath(name_of(file)).stem}.json")) for file in files)
        _refuse_collisions(jobs)
        return cls(jobs, folder)

    def make_folder(self) -> None:
        """Make the folder, if there is none. Raises OSError."""
        if self.folder is not None:
            Path(self.folder).mkdir(parents=True, exist_ok=True)


def _require_folder(output: str, folder: str | None) -> None:
    from virtualzarr_refs.references.recognition import is_parquet_name  # noqa: PLC0415  slow to import

    is_there = folder is not None and Path(folder).is_dir()
    is_file = folder is not None and Path(folder).is_file()
    if is_file or is_parquet_name(output) or (output.endswith(".json") and not is_there):
        raise click.UsageError(f"several files make a set each, so {output} has to be a folder")


def _refuse_collisions(jobs: Sequence[Job]) -> None:
    files: defaultdict[str, list[str]] = defaultdict(list)
    for job in jobs:
        files[job.output].append(job.file)
    for output, several in files.items():
        if len(several) > 1:
            raise click.UsageError(
                f"{' and '.join(several)} would all be written to {output}; scan them into different folders"
            )


def refuse_to_replace(jobs: Sequence[Job], storage_options: Mapping[str, object] | None, *, overwrite: bool) -> None:
    """Refuse to write where there is something, unless that is a reference set and may be overwritten.

    Raises
    ------
    click.UsageError
        Before anything is written.
    """
    from virtualzarr_refs.references.recognition import is_parquet_name, is_reference_set  # noqa: PLC0415  slow to import
    from virtualzarr_refs.references.target import open_target  # noqa: PLC0415
    from virtualzarr_refs.scanning import absolute_url  # noqa: PLC0415

    for job in jobs:
        url = absolute_url(job.output)
        if open_target(url, storage_options).exists(url):
            if not overwrite:
                raise click.UsageError(f"{job.output} is there already; --overwrite replaces it")
            if is_parquet_name(url):
                continue  # the writer refuses all but a set
            if not is_reference_set(url) or Path(url).is_dir():
                raise click.UsageError(f"{job.output} is there already, and is no reference set; it is not replaced")
