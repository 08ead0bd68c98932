import pytest

from utils.errors import DataError, UsageError
from utils.run_folder import RunFolder


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.prepare(resume=False, overwrite=False)
    folder.write_text("own.txt", "one")
    (folder.path / "notes.txt").write_text("mine")
    return folder


def test_writes_appear_whole_or_not_at_all(folder):
    with pytest.raises(ZeroDivisionError), folder.replacing("own.txt") as path:
        path.write_text("half")
        raise ZeroDivisionError
    assert (folder.path / "own.txt").read_text() == "one\n"
    assert sorted(p.name for p in folder.path.iterdir()) == ["notes.txt", "own.txt", "written.json"]


def test_own_files_are_replaced_and_others_never(folder):
    folder.write_text("own.txt", "two")
    assert (folder.path / "own.txt").read_text() == "two\n"
    with pytest.raises(DataError, match="notes.txt: was not written by this program"):
        folder.write_text("notes.txt", "yours")
    assert (folder.path / "notes.txt").read_text() == "mine"


def test_a_folder_in_use_needs_a_word(folder):
    with pytest.raises(UsageError, match="is not empty: choose another, or give --resume_training or --overwrite"):
        folder.prepare(resume=False, overwrite=False)
    assert (folder.path / "own.txt").exists()


def test_checking_a_folder_changes_nothing_and_clearing_it_spares_other_files(folder):
    folder.prepare(resume=False, overwrite=True)
    assert (folder.path / "own.txt").exists()
    folder.remove(folder.written())
    assert sorted(p.name for p in folder.path.iterdir()) == ["notes.txt", "written.json"]


def test_remove_leaves_other_files(folder):
    folder.remove(["notes.txt", "own.txt"])
    assert sorted(p.name for p in folder.path.iterdir()) == ["notes.txt", "written.json"]


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be created"):
        RunFolder(tmp_path / "file" / "run").prepare(resume=False, overwrite=False)
    with pytest.raises(DataError, match="cannot be created: File exists"):
        RunFolder(tmp_path / "file").prepare(resume=False, overwrite=False)


def test_a_damaged_manifest_is_an_error(folder):
    (folder.path / "written.json").write_text("[")
    with pytest.raises(DataError, match="written.json: cannot be read"):
        folder.prepare(resume=True, overwrite=False)
