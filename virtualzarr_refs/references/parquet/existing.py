"""What is in the folder that a set is to be written to."""

from __future__ import annotations

import errno

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.hierarchy import METADATA_KEY
from virtualzarr_refs.references.documents import ZMETADATA
from virtualzarr_refs.references.parquet.files import SetFiles
from virtualzarr_refs.references.parquet.kerchunk_reader import parse_zmetadata
from virtualzarr_refs.references.parquet.lock import LOCK
from virtualzarr_refs.references.parquet.reader import read_index
from virtualzarr_refs.references.target import Target
from virtualzarr_refs.sources.redaction import redact


def refuse_to_replace(target: Target, files: SetFiles, *, overwrite: bool) -> None:
    """Refuse to write where there is something, unless that is a reference set and may be replaced.

    Raises
    ------
    FileExistsError
        If it is not so. What is left of a writer that died is no set, and in nobody's way.
    """
    if not target.exists(files.folder):
        return
    names = set(target.names(files.folder))
    if not target.is_folder(files.folder):
        raise _exists(files, "this is no folder with a reference set, and is not replaced")
    if names and not is_set(files) and LOCK not in names:
        raise _exists(files, "this is no reference set, and is not replaced")
    if not overwrite and is_set(files):
        raise _exists(files, "a reference set is there already; overwrite=True replaces it")


def is_set(files: SetFiles) -> bool:
    """Whether a set is in a folder, whole: not any other Zarr hierarchy."""
    try:
        if read_index(files) is not None:
            return True
        metadata = files.find(ZMETADATA)
        return metadata is not None and bool(parse_zmetadata(metadata))
    except ReferenceSetError as error:
        raise _exists(
            files, f"there is a {METADATA_KEY} or {ZMETADATA} of no reference set, or of a damaged one"
        ) from error


def _exists(files: SetFiles, reason: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, reason, redact(files.folder))
