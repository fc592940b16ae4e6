"""How tests run: one thread a process, one compiler a worker, and how much of the corpus of kernels."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# PyTorch's own threads would wait for each other, up to milliseconds an operator: workers take all cores.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest

from cutegen_lab.compile.pool import Pool
from cutegen_lab.core.verdict import Verdict
from tests.harness.checking import Compiler
from tests.harness.keeping import BUILDS, Outcome, Outcomes, digest_of_everything, folders, forget_others
from tests.harness.pace import PACE

QUICK_SECONDS = 140.0
SLOW = Path(__file__).parent / "judge"  # a test draws and compares for a second, ten minutes in all
_KEPT = pytest.StashKey[Outcomes]()
_PASSED = pytest.StashKey[list[pytest.Item]]()
_NOT_KEPT = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cutegen-lab")
    group.addoption("--exhaustive", action="store_true", help="every check on all draws, and no kept outcome believed")
    group.addoption(
        "--quick", action="store_true",
        help="first what is neither slow nor compiles; then the rest, but for what passed while nothing was different",
    )  # fmt: skip
    group.addoption(
        "--quick-seconds", type=float, default=QUICK_SECONDS, metavar="SECONDS",
        help=f"when the last of the rest may begin in a quick run (default: {QUICK_SECONDS:g})",
    )  # fmt: skip
    group.addoption("--seed", type=int, default=0, help="of the sizes and configs drawn at random (default: 0)")
    group.addoption("--accept", action="store_true", help="write golden texts anew, to be reviewed as a diff")


def pytest_configure(config: pytest.Config) -> None:
    PACE.started = time.monotonic()
    PACE.quick_seconds = config.getoption("--quick-seconds") if config.getoption("--quick") else None
    folder = _folder(config)
    if not hasattr(config, "workerinput"):
        forget_others(folder, [*folders().values(), _tests_folder()])
    os.environ[BUILDS] = str(folder / folders()["builds"])
    run = Pool.run

    def watched(self: Pool, *arguments: object) -> object:
        PACE.before_work()
        return run(self, *arguments)  # type: ignore[arg-type]

    Pool.run = watched  # type: ignore[method-assign, assignment]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "compiler" in getattr(item, "fixturenames", ()):
            item.add_marker("kernel")
        if item.path.is_relative_to(SLOW):
            item.add_marker("slow")
    config.stash[_KEPT] = Outcomes(_folder(config) / _tests_folder())
    if PACE.quick_seconds is None:
        return
    config.stash[_PASSED] = passed = [
        item for item in items if _waits(item) and config.stash[_KEPT].get(_key(item)) is not None
    ]
    config.hook.pytest_deselected(items=passed)
    gone = set(passed)
    items[:] = sorted((item for item in items if item not in gone), key=_turn)


def _folder(config: pytest.Config) -> Path:
    """Of kept builds and outcomes. A run without pytest's cache keeps none."""
    if hasattr(config, "cache"):
        return config.cache.mkdir("kernels")
    if _NOT_KEPT not in config.stash:
        config.stash[_NOT_KEPT] = tempfile.TemporaryDirectory(prefix="kernels-")
        config.add_cleanup(config.stash[_NOT_KEPT].cleanup)
    return Path(config.stash[_NOT_KEPT].name)


def _tests_folder() -> str:
    return f"tests-{digest_of_everything()[:16]}"


def _waits(item: pytest.Item) -> bool:
    """Whether it comes after the others in a quick run, if time is left."""
    return any(item.get_closest_marker(name) for name in ("kernel", "slow"))


def _key(item: pytest.Item) -> str:
    return hashlib.sha256(item.nodeid.encode()).hexdigest()


def _turn(item: pytest.Item) -> tuple[int, str]:
    """What is neither slow nor compiles goes first; then, since time may end, a mixture of the rest; last what compiles
    in a process of the command line's, say, of which the harness keeps no builds."""
    if not _waits(item):
        return 0, ""
    keeps = "compiler" in item.fixturenames or item.get_closest_marker("kernel") is None  # type: ignore[attr-defined]
    return 1 + (not keeps), _key(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    PACE.test = item
    try:
        return (yield)
    finally:
        PACE.test = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    kept = item.config.stash.get(_KEPT, None)
    if kept is not None and report.when == "call" and report.passed and _waits(item):
        kept.put(_key(item), Outcome(Verdict.PASSED))
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.stash.get(_PASSED, []):
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if passed := config.stash.get(_PASSED, []):
        terminalreporter.write_line(f"{len(passed)} slow tests passed before, and nothing is different: not run again")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if _waits(item):
        PACE.skip_if_late()


@pytest.fixture(scope="session")
def compiler(request: pytest.FixtureRequest) -> Iterator[Compiler]:
    """Keeps builds and outcomes under pytest's cache folder: ``--cache-clear`` forgets them."""
    with Compiler(_folder(request.config), thorough=request.config.getoption("--exhaustive")) as made:
        yield made


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest) -> range:
    """Of the trials that a test of the judge makes: one, and with ``--exhaustive`` three from ``--seed`` on."""
    first = request.config.getoption("--seed")
    return range(first, first + (3 if request.config.getoption("--exhaustive") else 1))
