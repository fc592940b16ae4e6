"""Full and read-only disks, real ones: one line that says what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import KERNEL, ROOT, Done, environment

ISOLATED = ["unshare", "--user", "--map-root-user", "--mount"]


def on_disk(place: Path, options: str, script: str) -> Done:
    """``script`` with ``$CUTEGEN`` for the command, where ``disk`` is a file system of its own."""
    (place / "disk").mkdir()
    try:
        subprocess.run([*ISOLATED, "true"], check=True, capture_output=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing can be mounted here")
    whole = f"set -e; mount -t tmpfs -o {options} tmpfs disk; set +e; {script}"
    done = subprocess.run(  # noqa: S603
        [*ISOLATED, "sh", "-c", whole], cwd=place, capture_output=True, text=True, timeout=120,
        env=environment(place, CUTEGEN=f"{sys.executable} -m cutegen_lab", PYTHONPATH=str(ROOT)),
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def one_line(done: Done) -> str:
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("cutegen: "), done.stderr
    assert "internal error" not in done.stderr
    return done.stderr


FILL = "dd if=/dev/zero of=disk/rest bs=4k 2>/dev/null\n"


def test_a_full_disk_under_the_store(place: Path) -> None:
    (place / "talk").mkdir()
    done = on_disk(
        place, "size=512k",
        f"$CUTEGEN runs list --workdir disk >/dev/null || exit 9\n{FILL}"
        "$CUTEGEN run softmax.py --auto --workdir disk --device emulator --provider manual:talk",
    )  # fmt: skip
    said = one_line(done)
    assert "disk/lab.db" in said and "Check disk space" in said and "--workdir" in said


def test_no_room_for_a_lock(place: Path) -> None:
    lease = "from pathlib import Path; from cutegen_lab.stores.lease import Lease; Lease(Path('disk/locks'), 'r')"
    done = on_disk(place, "size=64k", f'mkdir disk/locks\n{FILL}{sys.executable} -c "{lease}"')
    last = done.stderr.splitlines()[-1]
    assert "StoreError: cannot write disk/locks/r.lock: No space left on device. Make room for it" in last


def test_a_cache_that_is_read_only(place: Path) -> None:
    (place / "kernel.py").write_text(KERNEL.read_text())
    done = on_disk(place, "ro,size=1m", "CUTEGEN_CACHE=disk $CUTEGEN judge softmax.py kernel.py --device emulator")
    assert done.returncode == 2 and "Traceback" not in done.stderr and "internal error" not in done.stderr, done
    assert "Read-only file system" in done.stderr and "CUTEGEN_CACHE" in done.stderr.splitlines()[-1]


def test_a_work_directory_that_is_read_only(place: Path) -> None:
    said = one_line(on_disk(place, "ro,size=1m", "$CUTEGEN runs list --workdir disk"))
    assert "disk/lab.db" in said and "--workdir" in said


def test_no_room_for_what_is_written_aside(place: Path) -> None:
    (place / "kernel.py").write_text(KERNEL.read_text())
    script = "TMPDIR=$PWD/disk $CUTEGEN judge softmax.py kernel.py --device emulator"
    said = one_line(on_disk(place, "size=64k", script))
    assert "database or disk is full" in said and "Check disk space" in said
