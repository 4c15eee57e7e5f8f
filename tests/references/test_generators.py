import pytest

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.references import generators
from virtualzarr_refs.references.generators import generate
from virtualzarr_refs.references.templates import Templates

EXAMPLE = {
    "key": "x/{{i}}",
    "url": "http://{{u}}_{{i}}",
    "offset": "{{(i + 1) * 1000}}",
    "length": "1000",
    "dimensions": {"i": {"stop": 3}},
}


def test_the_example_of_the_specification():
    assert list(generate([EXAMPLE], Templates({"u": "server.domain/path"}))) == [
        (f"x/{i}", [f"http://server.domain/path_{i}", (i + 1) * 1000, 1000]) for i in range(3)
    ]


def test_two_dimensions_a_list_a_step_and_whole_files():
    generator = {
        "key": "x/{{i // 2}}.{{j}}",
        "url": "{{name}}",
        "dimensions": {"i": {"start": 4, "stop": 0, "step": -2}, "j": [7, 8], "name": ["a b", "c"]},
    }
    assert [key for key, _ in generate([generator], Templates())] == [
        f"x/{i}.{j}" for i in (2, 1) for j in (7, 8) for _ in range(2)
    ]
    assert [url for _, (url,) in generate([generator], Templates())] == ["a b", "c"] * 4


def test_numbers_may_be_plain():
    (only,) = generate([{**EXAMPLE, "offset": 5, "length": 6, "dimensions": {"i": [1]}}], Templates({"u": "h"}))
    assert only == ("x/1", ["http://h_1", 5, 6])


@pytest.mark.parametrize(
    "change",
    [
        {"dimensions": None}, {"dimensions": {"i": 3}}, {"dimensions": {"i": {"start": 0}}}, {"dimensions": [1]},
        {"dimensions": {"i": {"stop": 3, "step": 0}}}, {"dimensions": {"i": {"stop": 2.5}}},
        {"dimensions": {"i": [None]}}, {"dimensions": {"i": {"stop": True}}}, {"key": None}, {"url": 1.5},
        {"offset": "{{i - 1}}"}, {"offset": "{{i}}.5"}, {"length": "x"}, {"length": "9" * 20}, {"length": "²"},
        {"key": "x/{{'%03d' % i}}"}, {"key": "{{k}}"}, {"url": "{{u.x}}"}, {"offset": "{{u}}"}, {"length": ""},
    ],
)  # fmt: skip
def test_malformed_generators_are_refused(change):
    with pytest.raises(ReferenceSetError):
        list(generate([{**EXAMPLE, **change}], Templates({"u": "h"})))


@pytest.mark.parametrize("member", ["x", 5, {"a": 1}, [5], ["x"], [None]])
def test_what_is_no_list_of_generators_is_refused(member):
    with pytest.raises(ReferenceSetError):
        list(generate(member, Templates()))


def test_an_offset_needs_a_length():
    with pytest.raises(ReferenceSetError, match="both an offset and a length"):
        list(generate([{name: EXAMPLE[name] for name in EXAMPLE if name != "length"}], Templates({"u": "h"})))


@pytest.mark.parametrize("stop", [10**7, 10**18, 10**40])
def test_too_many_references_are_refused_before_any_is_made(stop):
    bomb = {**EXAMPLE, "dimensions": {"i": {"stop": stop}, "j": {"stop": stop}}}
    with pytest.raises(ReferenceSetError, match="more than"):
        next(generate([bomb], Templates({"u": "h"})))


def test_the_limit_is_on_all_generators_together(monkeypatch):
    monkeypatch.setattr(generators, "MAX_GENERATED", 5)
    assert len(list(generate([EXAMPLE], Templates({"u": "h"})))) == 3
    with pytest.raises(ReferenceSetError, match="more than 5"):
        list(generate([EXAMPLE, EXAMPLE], Templates({"u": "h"})))
