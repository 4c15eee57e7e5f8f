"""``vzrefs serve``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from virtualzarr_refs.cli.options import allow_option, example, source_options
from virtualzarr_refs.cli.output import counted, say
from virtualzarr_refs.errors import UnsupportedError
from virtualzarr_refs.sources import Backend

if TYPE_CHECKING:
    from virtualzarr_refs.hierarchy import VirtualGroup
    from virtualzarr_refs.server import Codecs


@click.command(
    epilog=example(
        "vzrefs serve january.json",
        "vzrefs serve january.nc february.nc --port 8080 --codecs core",
    )
)
@click.argument("targets", metavar="REFS|FILE...", nargs=-1, required=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all networks.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one.")
@click.option(
    "--codecs",
    type=click.Choice(["stored", "core"]),
    default="stored",
    show_default=True,
    help="Chunks as they are stored; or encoded anew, as they are asked for, in a regular grid with codecs that every "
    "Zarr v3 reader has: bytes and zstd.",
)
@click.option(
    "--token",
    envvar="VZREFS_TOKEN",
    metavar="TOKEN",
    help="Answer only requests with Authorization: Bearer TOKEN. Other users of this machine see the arguments of a "
    "command; the variable VZREFS_TOKEN of the environment hides it from them.",
)
@click.option(
    "--origin",
    "origins",
    multiple=True,
    default=("*",),
    show_default=True,
    metavar="URL",
    help="Web site whose pages may read; may be given several times.",
)
@click.option(
    "--npm",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="A folder node_modules with zarrita for the page at /; without it, browsers load zarrita from jsdelivr.net.",
)
@click.option("--quiet", is_flag=True, help="Write no line for each request.")
@allow_option
@source_options
def serve(
    targets: tuple[str, ...],
    *,
    allow: tuple[str, ...],
    backend: Backend,
    storage_options: dict[str, Any] | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Serve reference sets and files over HTTP, for Zarr readers in any language.

    The paths are the keys of a Zarr v3 hierarchy. Several REFS and FILEs become groups of one, by their names.
    A browser that opens the address shows the tree, where chunks lie, and pictures of the values.
    Nothing is copied: bytes are read from the files as they are asked for. Ctrl-C stops the server.
    """
    settings = _Settings(**options)
    if settings.token == "":
        raise click.BadParameter("an empty token keeps nobody out", param_hint="--token")
    group = _open(targets, allow=allow or None, backend=backend, storage_options=storage_options)
    try:
        _serve(group, settings, backend, storage_options)
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise UnsupportedError('serving needs the extra "serve": pip install "virtualzarr-refs[serve]"') from error


@dataclass(frozen=True, slots=True)
class _Settings:
    """The options of the command, but for those that say how files are read."""

    host: str
    port: int
    codecs: Codecs
    token: str | None = field(repr=False)
    origins: tuple[str, ...]
    npm: Path | None
    quiet: bool


def _open(targets: tuple[str, ...], **options: Any) -> VirtualGroup:  # noqa: ANN401  passed on
    """One hierarchy of all that is served."""
    from virtualzarr_refs.hierarchy import VirtualGroup  # noqa: PLC0415  slow to import
    from virtualzarr_refs.metadata import GroupMetadata  # noqa: PLC0415
    from virtualzarr_refs.references.recognition import open_hierarchy  # noqa: PLC0415
    from virtualzarr_refs.sources.scanned import join_sources  # noqa: PLC0415

    if len(targets) == 1:
        return open_hierarchy(targets[0], **options)
    groups: dict[str, VirtualGroup] = {}
    for target in targets:
        name = _name(target)
        if name in groups:
            raise click.UsageError(f"two of the files have the name {name}; serve them on ports of their own")
        groups[name] = open_hierarchy(target, **options)
    skipped = (replace(r, path=f"{name}/{r.path.lstrip('/')}") for name, group in groups.items() for r in group.skipped)
    sources = join_sources(group.sources for group in groups.values())
    return VirtualGroup(GroupMetadata(skipped=tuple(skipped)), groups=groups, sources=sources)


def _name(target: str) -> str:
    from virtualzarr_refs.references.urls import name_of  # noqa: PLC0415  slow to import

    return PurePosixPath(name_of(target)).stem


def _serve(group: VirtualGroup, settings: _Settings, backend: Backend, storage_options: dict[str, Any] | None) -> None:
    from virtualzarr_refs.reader import ReadOptions  # noqa: PLC0415  slow to import
    from virtualzarr_refs.server import application, listen, serve  # noqa: PLC0415

    reading = ReadOptions(storage_options, backend)
    app = application(
        group,
        reading,
        codecs=settings.codecs,
        token=settings.token,
        origins=settings.origins,
        npm=settings.npm,
    )
    with listen(settings.host, settings.port) as listening:
        host, port = listening.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        say(f"{counted(sum(1 for _ in group.walk_arrays()), 'array')} at {address}; Ctrl-C stops the server")
        serve(app, listening, access_log=not settings.quiet)
