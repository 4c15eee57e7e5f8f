import pytest

from tests.server.asgi import Client
from virtualzarr_refs.server import application

TOKEN = "open sesame"  # noqa: S105


def test_with_the_token(group):
    client = Client(application(group, token=TOKEN))
    assert client.get("/raw/c/0/0", authorization=f"Bearer {TOKEN}").status == 200
    assert client.head("/", authorization=f"bearer  {TOKEN}").status == 200


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Bearer open", f"Basic {TOKEN}", TOKEN, "Bearer \xff"])
def test_without_it(group, given):
    client = Client(application(group, token=TOKEN))
    for path in ("/raw/c/0/0", "/zarr.json", "/", "/nowhere"):
        answer = client.get(path, authorization=given, origin="https://site.example")
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.headers["access-control-allow-origin"] == "*"
        assert TOKEN not in answer.body.decode()


def test_an_empty_token_is_refused(group):
    with pytest.raises(ValueError, match="empty token"):
        application(group, token="")


def test_pages_of_other_sites_may_read(group):
    answer = Client(application(group)).get("/raw/c/0/0", origin="https://site.example", range="bytes=0-3")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert {"ETag", "Content-Range"} <= set(answer.headers["access-control-expose-headers"].split(", "))


def test_a_page_may_ask_first_without_a_token(group):
    asked = {"origin": "https://site.example", "access_control_request_method": "GET"}
    client = Client(application(group, token=TOKEN))
    answer = client.request("OPTIONS", "/raw/c/0/0", access_control_request_headers="authorization,range", **asked)
    assert answer.status == 200
    assert "Range" in answer.headers["access-control-allow-headers"]


def test_only_pages_of_the_sites_that_are_named(group):
    client = Client(application(group, origins=["https://ours.example"]))
    ours, other = (client.get("/raw/c/0/0", origin=f"https://{site}.example").headers for site in ("ours", "other"))
    assert ours["access-control-allow-origin"] == "https://ours.example"
    assert "access-control-allow-origin" not in other
