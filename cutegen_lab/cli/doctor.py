"""``cutegen doctor``: checks the installation. Exit status 0: everything a run needs is available, else 1."""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from cutegen_lab.cli.output import Output
from cutegen_lab.config import Settings
from cutegen_lab.core.errors import CutegenError, SetupError, of_the_disk
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.secrets import without_credentials
from cutegen_lab.views.hints import COMMAND_LINE, advised, spelled

_PACKAGES = {"elftools": "pyelftools"}  # modules whose package has a different name


@dataclass(frozen=True)
class Finding:
    """One line. ``needed``: runs are impossible without it. ``action``: what to do if it is missing."""

    name: str
    ok: bool
    detail: str
    action: str = ""
    needed: bool = True


def execute(arguments: argparse.Namespace, output: Output) -> int:
    settings = Settings.from_environment()
    findings = examine(settings, Path(arguments.workdir) if arguments.workdir else settings.workdir)
    width = max(len(f.name) for f in findings)
    for found in findings:
        mark = "ok" if found.ok else "MISSING" if found.needed else "absent"
        output.line(f"{mark:8} {found.name:{width}}  {found.detail}")
        if not found.ok and found.action:
            output.line(f"{'':8} {'':{width}}  → {found.action}")
    lacking = [f.name for f in findings if f.needed and not f.ok]
    reason = f"missing: {', '.join(lacking)}" if lacking else "everything the main job needs is here"
    output.line()
    output.line(reason)
    output.result(
        {"verdict": "missing" if lacking else "ok", "reason": reason, "findings": [asdict(f) for f in findings]}
    )
    return 1 if lacking else 0


def examine(settings: Settings, workdir: Path) -> list[Finding]:
    """All findings, cheap ones first."""
    return [
        _python(),
        _package("torch", "pip install torch"),
        _package("nvidia-cutlass-dsl", "pip install nvidia-cutlass-dsl==4.8.1"),
        _bytecode("torch"),
        _c_compiler(),
        _guarded("compile cage", lambda: _cage(settings), needed=True),
        _guarded("store", lambda: _store(workdir), needed=True),
        _guarded("GPU", _gpu, needed=False),
        _key(settings),
    ]


def _python() -> Finding:
    version = platform.python_version()
    return Finding("python", sys.version_info >= (3, 11), version, "Use Python 3.11 or newer.")


def _package(name: str, action: str) -> Finding:
    from cutegen_lab.session.versions import versions

    found = versions().get(name, "missing")
    return Finding(name, found != "missing", found, f"{action}.")


def bytecode_of(module: str) -> Path | None:
    """Path of an installed module's bytecode, which may be missing; None if the module is not installed or cannot have
    bytecode. pip writes bytecode; images built with PYTHONDONTWRITEBYTECODE lack it."""
    spec = find_spec(module)
    return None if spec is None or spec.cached is None else Path(spec.cached)


def _bytecode(module: str) -> Finding:
    path = bytecode_of(module)
    if path is None or path.is_file():
        return Finding("bytecode", path is not None, f"{module} is compiled" if path else f"no {module}", needed=False)
    return Finding(
        "bytecode",
        False,
        f"{module} has none: each start spends seconds on compiling what it imports",
        f"{sys.executable} -m compileall -q {path.parents[2]}",  # packages/module/__pycache__/file
        needed=False,
    )


def _c_compiler() -> Finding:
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    return Finding("C compiler", found is not None, found or "none of cc, gcc, clang", "Install gcc or clang.")


def _cage(settings: Settings) -> Finding:
    from cutegen_lab.compile import CageCompiler
    from cutegen_lab.compile.isolate import lacking, missing_walls

    with CageCompiler(settings.cache_dir, workers=1) as compiler:
        isolation = compiler.isolation_report()
    detail = f"stand-in runtime built; isolation: {', '.join(isolation) or 'none'}"
    if missing := missing_walls(isolation):
        allowed = " (allowed by CUTEGEN_ALLOW_WEAK_CAGE)" if settings.allow_weak_cage else ""
        return Finding(
            "compile cage",
            False,
            f"a candidate is not isolated: {'; '.join(missing)}{allowed}; {detail}",
            spelled(Hint(Advice.WEAK_CAGE), COMMAND_LINE),
        )
    if notes := lacking(isolation):
        detail += f" ({'; '.join(notes)})"
    return Finding("compile cage", True, detail)


def _store(workdir: Path) -> Finding:
    from cutegen_lab.stores.sqlite import SqliteStore

    path = workdir / "lab.db"
    if not path.exists():
        return Finding("store", True, f"{path} (none yet)")
    store = SqliteStore(path)
    count = len(store.runs())
    store.close()
    return Finding("store", True, f"{path}, {count} runs")


def _gpu() -> Finding:
    from cutegen_lab.devices.cuda import gpu_count, sanitizer
    from cutegen_lab.devices.cuda.nvml import installed
    from cutegen_lab.devices.select import select

    device = select("cuda")
    name = device.name
    device.close()
    wanted = {
        "libnvidia-ml": installed(),
        "Triton": find_spec("triton") is not None,
        "a C compiler": bool(shutil.which("cc")),
    }
    lacks = " or ".join(what for what, there in wanted.items() if not there)
    detail = f"{name}; times have clocks, power and a torch.compile baseline" + (
        f" as far as they can without {lacks}" if lacks else ""
    )
    if (more := gpu_count() - 1) > 0:
        detail += f"; {more} more, to cuda:{more}"
    detail += "; " + ("--deep has compute-sanitizer" if sanitizer.find() else "no compute-sanitizer for --deep")
    return Finding("GPU", True, detail, needed=False)


def _key(settings: Settings) -> Finding:
    where = f" for {without_credentials(settings.openai_base_url)}" if settings.openai_base_url else ""
    detail = f"OPENAI_API_KEY is {'set' if settings.openai_api_key else 'not set'}{where}"
    action = "Set OPENAI_API_KEY to let a model write kernels; templates need none."
    return Finding("model key", bool(settings.openai_api_key), detail, action, needed=False)


def _guarded(name: str, examine: Callable[[], Finding], needed: bool) -> Finding:
    try:
        return examine()
    except CutegenError as error:
        return Finding(name, False, error.message, advised(error, COMMAND_LINE).action, needed)
    except ModuleNotFoundError as error:  # for example on a GPU node with little more than torch
        package = _PACKAGES.get(str(error.name), error.name)
        return Finding(name, False, f"needs {error.name}, which is not installed", f"pip install {package}.", needed)
    except Exception as error:  # reports any failure
        known = of_the_disk(error) or SetupError(f"{type(error).__name__}: {error}", "Reinstall cutegen-lab.")
        return Finding(name, False, known.message, advised(known, COMMAND_LINE).action, needed)
