import pytest

from virtualzarr_refs.sources.redaction import redact


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:pw@host/a.nc", "https://user:***@host/a.nc"),
        ("https://user:p@:w@host:8080/a.nc", "https://user:***@host:8080/a.nc"),
        ("https://:pw@host/a.nc", "https://:***@host/a.nc"),
        ("HTTPS://token@host/a.nc", "HTTPS://***@host/a.nc"),
        ("https://host/a.nc?X-Amz-Signature=0f&x=y", "https://host/a.nc?…"),
        ("https://host/a.nc?sig=with space 'and quotes'", "https://host/a.nc?…"),
        ("zip://a.nc::https://u:pw@host/a.zip?sig=1", "zip://a.nc::https://u:***@host/a.zip?…"),
        ("simplecache::https://host/a?sig=1::file:///x", "simplecache::https://host/a?…::file:///x"),
        ("403, message='Forbidden', url='https://host/a?sig=1'", "403, message='Forbidden', url='https://host/a?…'"),
        ("GET http://u:pw@host/a?sig=1 took 3 s. Try again?", "GET http://u:***@host/a?… took 3 s. Try again?"),
    ],
)
def test_hides(text, shown):
    assert redact(text) == shown
    assert redact(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "/data/what?.nc",
        "/data/ada:b@c.nc",
        "https://host:8080/a@b:c.nc",
        "abfs://container@account.dfs.core.windows.net/a.nc",
        "s3://bucket/key",
        "no such file: is the url right?",
    ],
)
def test_leaves_alone(text):
    assert redact(text) == text
