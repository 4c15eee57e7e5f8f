import pytest

from virtualzarr_refs.errors import NotRepresentableError
from virtualzarr_refs.references.secrets import require_no_secrets

SECRET = "tops3cret"  # noqa: S105  what must not be shown


@pytest.mark.parametrize(
    "url",
    [
        f"https://ada:{SECRET}@example.org/a.nc", f"https://{SECRET}@example.org/a.nc",
        f"s3://key:{SECRET}@bucket/a.nc", f"https://example.org/a.nc?X-Amz-Signature={SECRET}",
        f"https://example.org/a.nc?x=1&x-amz-credential={SECRET}", f"https://h/a?sv=1&sig={SECRET}",
        f"https://h/a?X-Goog-Signature={SECRET}", f"https://h/a?access_token={SECRET}", f"https://h/a?api_key={SECRET}",
        f"https://h/a?AWSAccessKeyId={SECRET}", f"https://h/a?key={SECRET}", f"https://h/a?%73ig={SECRET}",
        f"simplecache::https://ada:{SECRET}@example.org/a.nc", f"simplecache::https://h/a?token={SECRET}",
        f"abfs://container:{SECRET}@account/a", f"https://h/a?password={SECRET}", f"ftp://ada:{SECRET}@h/a",
    ],
)  # fmt: skip
def test_credentials_are_refused_and_not_shown(url):
    with pytest.raises(NotRepresentableError, match="storage_options") as caught:
        require_no_secrets(["s3://bucket/a.nc", url])
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "/data/me@home/a?b.nc", "s3://bucket/a@b.nc", "abfs://container@account.dfs.core.windows.net/a",
        "https://example.org/a.nc?version=3", "https://h/a?station=key", "/data/x?sig=1", "relative@x.nc",
    ],
)  # fmt: skip
def test_plain_urls_pass(url):
    require_no_secrets([url])
