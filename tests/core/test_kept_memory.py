"""Memory that is freed while a kernel is judged is used again, and given back some time later."""

from __future__ import annotations

import subprocess
import sys

COMMON = """
import resource, time
import psutil, torch
from cutegen_lab.core import kept_memory

TIMES, TENSOR = 8, 96 << 20  # bytes
kept_memory._IDLE_SECONDS = 0.1
kept_memory.one_arena()

def faults():  # pages that the system has to find for tensors that come and go
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(TIMES):
        torch.ones(TENSOR // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

"""


def run(text: str) -> None:
    """In a process of its own: what a test worker has allocated before decides what is mapped."""
    subprocess.run([sys.executable, "-c", COMMON + text], check=True)  # noqa: S603 - our own interpreter


def test_what_is_freed_is_used_again_and_goes_back() -> None:
    run("""
usual = faults()
with kept_memory.kept_memory():
    faults()
    kept = faults()
    held = psutil.Process().memory_info().rss
assert kept < usual / 3, (kept, usual)
deadline = time.monotonic() + 20
while psutil.Process().memory_info().rss > held - TENSOR / 2 and time.monotonic() < deadline:
    time.sleep(0.05)
assert psutil.Process().memory_info().rss < held - TENSOR / 2
""")


def test_it_is_kept_while_anybody_judges() -> None:
    run("""
usual = faults()
with kept_memory.kept_memory():
    with kept_memory.kept_memory():
        pass
    time.sleep(0.3)
    faults()
    assert faults() < usual / 3
""")


def test_a_forked_process_may_judge() -> None:
    """Whatever its parent was doing."""
    run("""
import os
with kept_memory.kept_memory(), kept_memory._KEPT._lock:
    child = os.fork()
    if child == 0:
        with kept_memory.kept_memory():
            os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
""")
