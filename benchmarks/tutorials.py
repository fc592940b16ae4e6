"""What the tutorials take: wall seconds, CPU seconds, and the peak of memory over all processes of a notebook.

    python -m benchmarks.tutorials OUT.json [NOTEBOOK.ipynb…]   (needs nbclient; no GPU)

Each is run in an empty folder with an empty cache of compiled kernels. Memory is proportional set size (PSS), sampled;
the Jupyter server is not in it. OUT.json keeps what it has of other notebooks.
"""

from __future__ import annotations

import os
import resource
import tempfile
import threading
import time
from pathlib import Path

import nbformat
import psutil
from nbclient import NotebookClient

from benchmarks.harness import ROOT, command_line, conditions, read_json, say, write_json

FOLDER = ROOT / "notebooks"
SAMPLE_S = 1.0


def main(out: Path, *notebooks: str) -> None:
    rows = read_json(out)["notebooks"] if out.exists() else {}
    print(f"{'notebook':32}{'wall s':>8}{'CPU s':>8}{'peak MiB':>10}")
    for path in [FOLDER / name for name in notebooks] or sorted(FOLDER.glob("*.ipynb")):
        wall_s, cpu_s, peak_bytes = taken(path)
        say(f"{path.name:32}{wall_s:8.0f}{cpu_s:8.0f}{peak_bytes / 2**20:10.0f}")
        rows[path.stem] = {"wall_s": round(wall_s, 1), "cpu_s": round(cpu_s, 1), "peak_mib": peak_bytes >> 20}
        write_json(out, conditions("none"), notebooks=dict(sorted(rows.items())))


def taken(path: Path) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds and peak bytes of one notebook. Raises CellExecutionError where a cell fails."""
    notebook, peak, ended = nbformat.read(path, as_version=4), [0], threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_S):
            peak[0] = max(peak[0], sum(map(pss, psutil.Process().children(recursive=True))))

    sampler = threading.Thread(target=sample)
    started, before = time.monotonic(), cpu_seconds()
    sampler.start()
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            os.environ["CUTEGEN_CACHE"] = f"{folder}/.cache"
            NotebookClient(notebook, timeout=900, resources={"metadata": {"path": folder}}).execute()
    finally:
        ended.set()
        sampler.join()
    return time.monotonic() - started, cpu_seconds() - before, peak[0]


def pss(process: psutil.Process) -> int:
    """Bytes of a process, shared ones divided among those that share them; 0 if it has ended."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def cpu_seconds() -> float:
    """CPU time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    command_line(main)
