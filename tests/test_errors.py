import inspect
import pickle

import pytest

from virtualzarr_refs import errors
from virtualzarr_refs.errors import (
    CacheWarning,
    DecodeError,
    FormatError,
    IncompatibleError,
    NodeNotFoundError,
    NotRepresentableError,
    ReferenceSetError,
    SetLockedError,
    SkippedFileWarning,
    SkippedNodeWarning,
    SourceChangedError,
    SourceChangedWarning,
    SourceError,
    SourceMissingError,
    SourceNotFoundError,
    SourceTruncatedError,
    UnsupportedError,
    VirtualZarrError,
    WorkerLostError,
)

BUILTINS = {
    FormatError: ValueError,
    UnsupportedError: NotImplementedError,
    ReferenceSetError: ValueError,
    NotRepresentableError: ValueError,
    IncompatibleError: ValueError,
    DecodeError: ValueError,
    WorkerLostError: RuntimeError,
    NodeNotFoundError: KeyError,
    SetLockedError: BlockingIOError,
    SourceError: OSError,
    SourceMissingError: OSError,
    SourceNotFoundError: FileNotFoundError,
    SourceTruncatedError: OSError,
    SourceChangedError: OSError,
}
KINDS = [VirtualZarrError, *BUILTINS]
WARNINGS = [CacheWarning, SkippedFileWarning, SkippedNodeWarning, SourceChangedWarning]
FIELDS = {"url": "s3://bucket/a.nc", "node": "/group/air", "feature": "filter 32004 (lz4)", "offset": 2048}


def fields_of(error):
    return {name: getattr(error, name) for name in FIELDS}


def test_the_table_above_is_complete():
    defined = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__}
    assert defined == {*KINDS, *WARNINGS}


@pytest.mark.parametrize(("kind", "builtin"), BUILTINS.items())
def test_each_is_also_the_builtin_that_a_caller_would_catch(kind, builtin):
    assert issubclass(kind, VirtualZarrError)
    with pytest.raises(builtin):
        raise kind("no")


@pytest.mark.parametrize("kind", [SourceMissingError, SourceTruncatedError, SourceChangedError])
def test_errors_of_sources_share_a_root(kind):
    assert issubclass(kind, SourceError)


def test_warnings_are_user_warnings():
    assert all(issubclass(kind, UserWarning) for kind in WARNINGS)


def test_the_tree_in_the_docstring_names_each():
    assert all(kind.__name__ in errors.__doc__ for kind in (*KINDS, *WARNINGS))


@pytest.mark.parametrize("kind", KINDS)
def test_says_what_and_where(kind):
    assert str(kind("cannot be read; scan it again")) == "cannot be read; scan it again"
    assert str(kind("bad", url="a.nc", offset=0)) == "bad [file a.nc, offset 0]"
    assert str(kind("bad", **FIELDS)) == (
        "bad [file s3://bucket/a.nc, node /group/air, feature filter 32004 (lz4), offset 2048]"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_fields_are_optional_and_kept(kind):
    assert fields_of(kind("bad")) == dict.fromkeys(FIELDS)
    assert fields_of(kind("bad", **FIELDS)) == FIELDS
    assert kind("bad", **FIELDS).message == "bad"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_with_its_fields(kind, protocol):
    error = kind("bad", **FIELDS).at(url="ignored")
    copy = pickle.loads(pickle.dumps(error, protocol))
    assert type(copy) is kind
    assert (str(copy), copy.message, fields_of(copy)) == (str(error), "bad", FIELDS)


@pytest.mark.parametrize("kind", KINDS)
def test_notes_survive_pickling(kind):
    error = kind("bad")
    error.add_note("while scanning")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while scanning"]


@pytest.mark.parametrize("kind", KINDS)
def test_at_fills_in_what_is_not_known(kind):
    error = kind("bad", feature="enum")
    assert error.at(node="/air") is error
    assert fields_of(error) == {"url": None, "node": "/air", "feature": "enum", "offset": None}
    assert fields_of(error.at(url="a.nc", node="/other")) == {
        "url": "a.nc",
        "node": "/air",
        "feature": "enum",
        "offset": None,
    }


def test_at_keeps_the_empty_string():
    assert NodeNotFoundError("no", node="").at(node="/air").node == ""
