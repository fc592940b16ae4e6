"""Which files are problems, in which order, and of which level."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError, ProblemError
from cutegen_lab.suite.files import is_problem, level_of, problem_files

REFERENCE = "def reference(x):  # x: f32[8, 8]\n    return x + 1\n"
KERNELBENCH = "class Model:\n    pass\n\n\ndef get_inputs():\n    return []\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {
        "level1/10_b.py": KERNELBENCH, "level1/2_a.py": KERNELBENCH, "level2/1_c.py": REFERENCE, "plain.py": REFERENCE,
        "level2/1_broken.py": "def reference(x:\n", "level1/__init__.py": "", "helper.py": "import os\n",
        ".hidden/3_d.py": REFERENCE, "level1/__pycache__/4_e.py": REFERENCE, "notes.txt": REFERENCE,
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "latin1.py").write_bytes(b"# caf\xe9\n")
    return tmp_path


def names(*paths: Path, levels: tuple[int, ...] = ()) -> list[str]:
    return [file.name for file in problem_files(paths, levels)]


def test_a_folder_has_its_problems_and_its_broken_files_in_natural_order(folder: Path) -> None:
    assert names(folder) == ["latin1", "level1/2_a", "level1/10_b", "level2/1_broken", "level2/1_c", "plain"]


def test_levels_select(folder: Path) -> None:
    assert names(folder, levels=(1,)) == ["level1/2_a", "level1/10_b"]
    assert names(folder, levels=(1, 2)) == ["level1/2_a", "level1/10_b", "level2/1_broken", "level2/1_c"]
    assert names(folder / "level2", levels=(2,)) == ["1_broken", "1_c"]
    with pytest.raises(InputError, match=r"no problem of level 4 .* Levels there: 1, 2"):
        problem_files([folder], (4,))


def test_a_file_that_is_given_is_always_a_row_and_never_two(folder: Path) -> None:
    assert names(folder / "helper.py") == ["helper"]
    assert names(folder / "level1" / "2_a.py", folder / "level1") == ["2_a", "10_b"]


def test_nothing_to_run_is_an_error(folder: Path) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="no problem in"):
        problem_files([folder / "empty"])
    with pytest.raises(InputError, match="nowhere does not exist"):
        problem_files([folder / "nowhere"])


def test_the_innermost_level_counts(tmp_path: Path) -> None:
    assert level_of(tmp_path / "level1" / "Level_3" / "x.py") == 3
    assert level_of(tmp_path / "levels" / "x.py") is None


def test_what_a_problem_defines() -> None:
    assert is_problem("reference = torch.relu\n") and is_problem("from torch import relu as reference\n")
    assert is_problem(KERNELBENCH) and not is_problem("class Model:\n    pass\n")
    assert not is_problem("def f():\n    def reference(x): ...\n")
    with pytest.raises(ProblemError, match="syntax error"):
        is_problem("def f(:\n")
