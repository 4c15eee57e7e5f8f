import pytest

from virtualzarr_refs.errors import ReferenceSetError
from virtualzarr_refs.references.templates import Templates, split_places


def test_names_are_replaced_as_plain_text():
    templates = Templates.parse({"u": "s3://bucket", "v": "a{b}{0}%s$x"})
    assert templates.substitute("{{u}}/{{ v }}/{{u}}.nc") == "s3://bucket/a{b}{0}%s$x/s3://bucket.nc"


def test_braces_mean_nothing_where_there_are_no_templates():
    assert Templates.parse({}).substitute("s3://b/{{u}}") == "s3://b/{{u}}"


@pytest.mark.parametrize(
    "url",
    ["{{w}}", "{{u()}}", "{{f(c='text')}}", "{{u.__class__}}", "{{u|upper}}", "{{'%d'|format(3)}}", "{{1+1}}", "{{}}"],
)
def test_what_is_no_known_name_is_refused(url):
    with pytest.raises(ReferenceSetError, match="nothing is evaluated"):
        Templates.parse({"u": "s3://bucket"}).substitute(f"{url}/x")


@pytest.mark.parametrize(
    "member", [{"f": "{{c}}"}, {"f": "{% for i in x %}"}, {"f": 5}, {"a b": "x"}, {"": "x"}, {"f": None}, ["f"], "f", 5]
)
def test_malformed_templates_and_programs_are_refused(member):
    with pytest.raises(ReferenceSetError, match="template"):
        Templates.parse(member)


def test_a_text_is_split_at_its_places():
    assert split_places("a{{i}}b{{ j+1 }}") == ["a", "i", "b", " j+1 ", ""]
