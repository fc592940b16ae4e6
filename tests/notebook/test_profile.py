"""A run's profile in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.notebook.run import NotebookRun
from cutegen_lab.session import Session
from tests.profiles.recorded import kept


@pytest.fixture
def run(tmp_path: Path) -> Iterator[NotebookRun]:
    with Session.open(tmp_path) as session:
        yield NotebookRun(session.attach(kept("softmax", tmp_path)))


def test_a_table_of_every_number(run: NotebookRun, tmp_path: Path) -> None:
    table = run.profile
    assert {row.candidate for row in table.rows} == {"", "c1"}
    assert repr(table).startswith(f"<profile of {run.run_id}: {len(table.rows)} rows")
    pytest.importorskip("pandas")
    assert len(table.df) == len(table.rows)


def test_it_is_written_as_csv(run: NotebookRun, tmp_path: Path) -> None:
    path = run.profile.save(tmp_path / "profile.csv")
    assert run.profile.save(path) == path, "again"
    assert len(path.read_text().splitlines()) == len(run.profile.rows) + 1
    (tmp_path / "mine.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="cutegen did not write it"):
        run.profile.save(tmp_path / "mine.csv")


def test_called_it_counts(run: NotebookRun) -> None:
    assert run.profile("c1") == run.handle.state.trials["c1"].profile
    with pytest.raises(InputError, match=r"profile: device is 3, not text\. Write profile\(candidate_id=None"):
        run.profile("c1", 3)  # type: ignore[arg-type]
