import pytest
from hypothesis import given
from hypothesis import strategies as st

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.references.arithmetic import MAX_LENGTH, parse_expression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("i", 3), (" i ", 3), ("i * 1000", 3000), ("(i * 4) + j", 17), ("(i + 1) * 1000", 4000), ("-i + 10", 7),
        ("7 // 2 % 2", 1), ("j - i - 1", 1), ("1000", 1000), ("((i))", 3), ("u", "text"),
    ],
)  # fmt: skip
def test_values(text, value):
    assert parse_expression(text, {"i", "j", "u"})({"i": 3, "j": 5, "u": "text"}) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "k", "i ** 9", "i << 100", "i / 2", "f(i)", "i.real", "i[0]", "'a'", "1.5", "True", "i if 1 else 2", "[i]",
        "i; j", "i = 1", "lambda: 1", "__import__('os')", "i := 2", "i and j", "i < j", "(i", "i)", "{i}", "'%d' % i",
        "i|upper", "~i", "+i", "i @ j", "(" * 40 + "i" + ")" * 40 + "x", "\x00", "i\nj", "1_0 +",
    ],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(ReferenceSetError, match="nothing else is evaluated"):
        parse_expression(text, {"i", "j"})


def test_a_long_expression_is_refused_before_it_is_parsed():
    with pytest.raises(ReferenceSetError, match="longer than"):
        parse_expression("1+" * MAX_LENGTH + "1", ())


@pytest.mark.parametrize(
    ("text", "what"), [("u + 1", "a text"), ("2 * u", "a text"), ("1 // i", "zero"), ("1 % i", "zero")]
)
def test_what_cannot_be_calculated(text, what):
    with pytest.raises(ReferenceSetError, match=what):
        parse_expression(text, {"i", "u"})({"i": 0, "u": "text"})


@given(st.text(max_size=40))
def test_any_text_gives_a_value_or_our_error(text):
    try:
        value = parse_expression(text, {"i"})({"i": 2})
    except ReferenceSetError:
        return
    assert isinstance(value, int)
