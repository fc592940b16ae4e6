"""``--out`` writes over what cutegen wrote itself, and over nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.session.kernels import with_header
from cutegen_lab.session.outputs import may_write, write_out
from cutegen_lab.views.html import report
from tests.cli.command import KERNEL, cutegen
from tests.cli.test_cli import SPEC

MINE = "# my notes, of which there is no copy\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "softmax.py", "--auto", "--out", "softmax.py"], "softmax.py is the problem's own file"),
        (["run", "softmax.py", "--auto", "--out", "./sub/../softmax.py"], "is the problem's own file"),
        (["run", "softmax.py", "--auto", "--out", "link.py"], "link.py is the problem's own file"),
        (["run", "softmax.py", "--auto", "--out", "mine.py"], "mine.py exists, and cutegen did not write it"),
        (["run", "softmax.py", "--auto", "--out", "sub"], "sub exists and is not a regular file"),
        (["tune", "softmax.py", "--out", "softmax.py"], "softmax.py is the problem's own file"),
        (["tune", "softmax.py", "kernel.py", "--out", "kernel.py"], "kernel.py exists, and cutegen did not write it"),
        (["demo", "--out", "out"], "out/report.html exists, and cutegen did not write it"),
        (["spec", "compile", "double.spec", "--out", "double.spec"], "double.spec is the problem's own file"),
        (["spec", "compile", "double.spec", "--out", "mine.py"], "mine.py exists"),
        (["spec", "compile", "double.spec", "--out", "my.py"], "my_problem.py exists"),
        (["bench", "H200", "--out", "mine.py"], "mine.py exists"),
    ],
)
def test_refused_before_any_work(place: Path, arguments: list[str], says: str) -> None:
    for folder in ("sub", "out"):
        (place / folder).mkdir()
    for name in ("mine.py", "my_problem.py", "out/report.html"):
        (place / name).write_text(MINE)
    (place / "kernel.py").write_text(KERNEL.read_text())
    (place / "double.spec").write_text(SPEC)
    (place / "link.py").symlink_to("softmax.py")
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    done = cutegen(place, *arguments)
    assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1, done
    assert {path: path.read_bytes() for path in before} == before
    assert not (place / "lab").exists() or not any((place / "lab").rglob("*.py"))


def test_what_cutegen_wrote_may_be_written_again_until_somebody_changes_it(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    for source in ("x = 1\r\n", "x = 2\n", ""):
        write_out(path, with_header(["# by cutegen-lab"], source, {"threads": 4}))
        assert path.read_bytes().decode().endswith(source)
    path.write_text(with_header([], "x = 1\n").replace("x = 1", "x = 3"))
    with pytest.raises(InputError, match="changed since"):
        write_out(path, "other")
    assert path.read_text().endswith("x = 3\n")
    page = tmp_path / "page.html"
    for _ in range(2):
        write_out(page, report([]))
    page.write_text("<html>mine</html>")
    with pytest.raises(InputError, match="did not write it"):
        may_write(page)


def test_odd_places(tmp_path: Path) -> None:
    may_write(tmp_path / "new.py")
    (tmp_path / "dangling.py").symlink_to("nowhere")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe")
    (tmp_path / "empty.py").write_text("")
    for place in (tmp_path / "dangling.py", tmp_path / "binary.py", tmp_path / "empty.py", Path("/dev/null")):
        with pytest.raises(InputError):
            may_write(place)


def test_exporting_a_run_over_a_file_of_ones_own(place: Path) -> None:
    (place / "mine.py").write_text(MINE)
    talk = place / "talk"
    talk.mkdir()
    (talk / "0001.answer.md").write_text("```python\nimport os\ndef launch(x, y, stream): ...\n```\n")
    done = cutegen(place, "run", "softmax.py", "--auto", "--provider", "manual:talk", "--max-steps", "1")
    assert done.returncode == 1, done
    run_id = cutegen(place, "runs", "list").stdout.splitlines()[1].split()[0]
    for name in ("mine.py", "softmax.py"):
        done = cutegen(place, "runs", "export", run_id, "--candidate", "c1", "--out", name)
        assert done.returncode == 2 and f"{name} exists, and cutegen did not write it" in done.stderr
    for name in ("new.py", "new.html", "new.cutegen-run.json", "new.cutegen") * 2:
        assert cutegen(place, "runs", "export", run_id, "--candidate", "c1", "--out", name).returncode == 0
    assert (place / "mine.py").read_text() == MINE
    sent = cutegen(place, "runs", "import", "new.cutegen", "--workdir", "elsewhere", "--json")
    assert sent.returncode == 0 and run_id in sent.stdout
    assert run_id in cutegen(place, "runs", "list", "--workdir", "elsewhere").stdout
    refused = cutegen(place, "runs", "import", "mine.py")
    assert refused.returncode == 2 and "mine.py is damaged, or no archived run" in refused.stderr
