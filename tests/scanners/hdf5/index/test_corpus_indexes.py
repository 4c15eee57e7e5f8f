"""Every chunked dataset of the corpus, compared with what libhdf5 lists."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest

from scanners.hdf5.index import read_index
from tests.corpus import VARIABLE, corpus_files, corpus_folder
from tests.scanners.hdf5.index.indexed import list_chunks, request_for, rows
from virtualzarr_refs.errors import FormatError
from virtualzarr_refs.sources import open_source

FILES = corpus_files("hdf5", "netcdf4", "bad")

LEFT_TO_LIBHDF5 = {"h5clear_mdc_image.h5"}
"""Its metadata lie in an image of libhdf5's cache and not where the superblock says."""

needs_corpus = pytest.mark.skipif(not FILES, reason=f"NO CORPUS: set {VARIABLE}; nothing was tested on real files")


def name(path: Path) -> str:
    folder = corpus_folder()
    return str(path.relative_to(folder)) if folder else path.name


def chunked_datasets(file: h5py.File) -> Iterator[h5py.Dataset]:
    found: list[h5py.Dataset] = []

    def visit(_: str, node: object) -> None:
        if isinstance(node, h5py.Dataset) and node.chunks:
            found.append(node)

    with contextlib.suppress(RuntimeError, OSError, KeyError, ValueError, TypeError):
        file.visititems(visit)
    yield from found


@needs_corpus
@pytest.mark.parametrize("path", FILES, ids=name)
def test_equal_to_what_libhdf5_lists(path):
    may_fail = "bad" in name(path) or path.name in LEFT_TO_LIBHDF5
    try:
        file = h5py.File(path)
    except OSError:
        return
    with file:
        for dataset in chunked_datasets(file):
            try:
                request = request_for(dataset, open_source(dataset.file.filename))
                found = rows(read_index(request))
            except FormatError:
                assert may_fail
                continue
            with contextlib.suppress(FormatError):
                assert found == rows(list_chunks(dataset, request))
