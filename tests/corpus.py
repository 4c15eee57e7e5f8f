"""The corpus of real files, which lies outside the project."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "VZREFS_CORPUS"


def corpus_folder() -> Path | None:
    """The folder that ``VZREFS_CORPUS`` names, or the one beside the checkout; None if there is none."""
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "corpus"
    return folder if folder.is_dir() else None


def corpus_files(*kinds: str) -> list[Path]:
    """Every file beneath the corpus's folders of these names, in a stable order."""
    folder = corpus_folder()
    if folder is None:
        return []
    return sorted(path for kind in kinds for path in (folder / kind).rglob("*") if path.is_file())
