import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from virtualzarr_refs.byte_range import ByteRange
from virtualzarr_refs.server.ranges import requested_range


@pytest.mark.parametrize(
    ("field", "offset", "length"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=2-4", 2, 3),
        ("Bytes = 2-4 ", 2, 3),
        ("bytes=2-", 2, 8),
        ("bytes=2-99999", 2, 8),
        ("bytes=9-9", 9, 1),
        ("bytes=-3", 7, 3),
        ("bytes=-99", 0, 10),
    ],
)
def test_ranges(field, offset, length):
    assert requested_range(field, 10) == ByteRange(offset, length)


@pytest.mark.parametrize("field", ["items=0-5", "items=anything"])
def test_other_units_are_ignored(field):
    assert requested_range(field, 10) is None


@pytest.mark.parametrize(
    "field",
    [
        *"bytes bytes= bytes=- bytes=5 bytes=5-2 bytes=a-b bytes=1-2-3 bytes=-1-2 bytes=0x1-2 bytes=1.5-2".split(),
        *("", "bytes=1 - 2", "bytes=" + "9" * 20 + "-", "bytes=1-\n2", "bytes=\u0663-\u0664"),
    ],
)
def test_malformed(field):
    with pytest.raises(HTTPException) as caught:
        requested_range(field, 10)
    assert caught.value.status_code == 400


@pytest.mark.parametrize(("field", "length"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-5", 0)])
def test_beyond_the_end(field, length):
    with pytest.raises(HTTPException) as caught:
        requested_range(field, length)
    assert caught.value.status_code == 416
    assert caught.value.headers == {"Content-Range": f"bytes */{length}"}


def test_several_ranges_are_refused():
    with pytest.raises(HTTPException, match="several") as caught:
        requested_range("bytes=0-1,3-4", 10)
    assert caught.value.status_code == 416


@settings(max_examples=50)
@given(st.text(st.sampled_from("bytes=-,0123 ")), st.integers(0, 40))
def test_whatever_is_sent_gives_a_range_inside_or_a_refusal(field, length):
    try:
        wanted = requested_range(field, length)
    except HTTPException as error:
        status, wanted = error.status_code, None
    else:
        status = 200 if wanted is None else 206
    assert status in (200, 206, 400, 416)
    assert wanted is None or (wanted.length > 0 and wanted.stop <= length)
