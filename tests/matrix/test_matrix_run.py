"""Which environments are on the disk, and what of a failure gets into the table."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import rows  # noqa: E402
import run  # noqa: E402
import venvs  # noqa: E402


@pytest.fixture(name="folders")
def on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(venvs, "folder_of", lambda row: tmp_path / row.key)
    for row in rows.ROWS:
        (tmp_path / row.key).mkdir()
    return tmp_path


def test_an_environment_goes_with_its_row_and_its_base_with_the_last_that_stands_on_it(folders):
    base = rows.named("torch==2.6.0")
    first, second = (row for row in rows.ROWS if row.base == base.key)
    run.remove(base, [first, second])
    assert (folders / base.key).exists()
    run.remove(first, [second])
    assert (folders / base.key).exists() and not (folders / first.key).exists()
    run.remove(second, [rows.named("torch==2.8.0")])
    assert not (folders / base.key).exists() and not (folders / second.key).exists()
    assert (folders / "torch==2.8.0").exists()


def test_every_base_is_a_row_that_comes_earlier_or_the_tests_own_environment():
    for number, row in enumerate(rows.ROWS):
        earlier = {other.key for other in rows.ROWS[:number]}
        assert row.base in earlier | {"", rows.TESTS}, row.key


def test_the_table_gets_no_folder_of_this_machine_and_stays_a_table():
    text = f"{venvs.REPO}/tests/x.py | failed\nin {pathlib.Path.home()}/y"
    assert run.without_paths(text) == "tests/x.py / failed in y"
