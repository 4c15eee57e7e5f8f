import pytest

from virtualzarr_refs.sources import SourceIdentity
from virtualzarr_refs.sources.identity import bare_etag


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (SourceIdentity(1), SourceIdentity(2), False),
        (SourceIdentity(1), SourceIdentity(1, "x", 5.0), True),
        (SourceIdentity(1, "x", 5.0), SourceIdentity(1, "x", 9.0), True),
        (SourceIdentity(1, "x", 5.0), SourceIdentity(1, "y", 5.0), False),
        (SourceIdentity(1, "x"), SourceIdentity(1, None, 5.0), True),
        (SourceIdentity(1, None, 5.0), SourceIdentity(1, None, 6.0), False),
        (SourceIdentity(1, None, 5.25), SourceIdentity(1, None, 5.5), False),
        (SourceIdentity(1, None, 5.123456789), SourceIdentity(1, None, 5.123457), True),
        (SourceIdentity(1, None, 5.0), SourceIdentity(1, None, 5.75), True),
    ],
)
def test_matches_in_what_both_know(a, b, same):
    assert a.matches(b) is same
    assert b.matches(a) is same


def test_no_negative_size():
    with pytest.raises(ValueError, match="negative"):
        SourceIdentity(-1)


@pytest.mark.parametrize("etag", ["abc", '"abc"', 'W/"abc"'])
def test_bare_etag(etag):
    assert bare_etag(etag) == "abc"
