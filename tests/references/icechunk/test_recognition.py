import icechunk
import pytest

from virtualzarr_refs.references.icechunk.recognition import is_icechunk


def test_a_repository_is_known_by_its_folder_its_name_or_its_type(tmp_path):
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "made")))
    assert is_icechunk(tmp_path / "made")
    assert is_icechunk("s3://bucket/year.icechunk/")
    assert is_icechunk(repository)
    assert is_icechunk(repository.readonly_session("main").store)


@pytest.mark.parametrize("other", ["s3://bucket/year.json", "year.icechunk.json", {}, None, b"year.icechunk"])
def test_nothing_else_is_one(tmp_path, other):
    assert not is_icechunk(other)
    assert not is_icechunk(tmp_path)
