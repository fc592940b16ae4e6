"""A wheel built once installs and works where there is no Node: an sdist, a wheel from it, a fresh environment."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTENSION = "share/jupyter/labextensions/cutegen-lab"


def call(*command: object, path: str, home: Path, cwd: Path = ROOT) -> str:
    environment = {"PATH": path, "HOME": str(home), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment |= {name: os.environ[name] for name in ("TMPDIR", "LANG") if name in os.environ}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)  # noqa: S603
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@dataclass(frozen=True)
class Built:
    wheel: Path
    home: Path
    no_node: str  # a PATH on which there is nothing


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    home = tmp_path_factory.mktemp("home")
    empty = tmp_path_factory.mktemp("empty-path")
    dist = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", dist)
    call(*build, "--sdist", ROOT, path=os.environ["PATH"], home=home)
    (sdist,) = dist.glob("*.tar.gz")
    source = tmp_path_factory.mktemp("source")
    call("/usr/bin/env", "tar", "-xzf", sdist, "-C", source, path=os.environ["PATH"], home=home)
    (unpacked,) = source.iterdir()
    call(*build, "--wheel", unpacked, path=str(empty), home=home)
    (wheel,) = dist.glob("*.whl")
    yield Built(wheel, home, str(empty))


@pytest.fixture(scope="module")
def python(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; its dependencies are those of the environment the tests run in."""
    venv = tmp_path_factory.mktemp("venv")
    call(sys.executable, "-m", "venv", "--without-pip", venv, path=built.no_node, home=built.home)
    python = venv / "bin/python"
    install = ("--python", python, "install", "--quiet", "--no-deps", "--no-index", built.wheel)
    call(sys.executable, "-m", "pip", *install, path=built.no_node, home=built.home)
    (site,) = (venv / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


@pytest.mark.slow
def test_wheel_brings_everything_it_needs(built: Built) -> None:
    names = set(zipfile.ZipFile(built.wheel).namelist())
    tracked = subprocess.run(  # noqa: S603
        ["git", "-C", str(ROOT), "ls-files", "cutegen_lab", "prompts", "notebooks"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    moved = {"prompts/": "cutegen_lab/prompts/", "notebooks/": "cutegen_lab/tutorials/"}
    wanted = {
        next((name.replace(old, new, 1) for old, new in moved.items() if name.startswith(old)), name)
        for name in tracked
        if (ROOT / name).exists()
    }
    assert wanted, "the test needs a checkout to know what is tracked"
    assert wanted - names == set()
    assert {f"cutegen_lab/notebook/static/{name}" for name in ("widget.js", "widget.css", "figure.js")} <= names
    shared = {name.split("/data/", 1)[1] for name in names if "/data/" in name}
    assert {f"{EXTENSION}/{name}" for name in ("package.json", "install.json", "static/style.js")} <= shared
    assert "etc/jupyter/jupyter_server_config.d/cutegen_lab.json" in shared
    assert any(re.fullmatch(rf"{EXTENSION}/static/remoteEntry\.\w+\.js", name) for name in shared)
    assert not [name for name in names if "node_modules" in name or name.endswith((".ts", ".tsx", ".map"))]


def test_widget_bundle_is_one_self_contained_module(built: Built) -> None:
    text = zipfile.ZipFile(built.wheel).read("cutegen_lab/notebook/static/widget.js").decode()
    assert re.search(r"export\s*\{[^}]*\bas default\b", text)
    assert not re.search(r"(^|[;\n])\s*import\b[^(]", text), "an import would need a bundler or a network"
    assert len(gzip.compress(text.encode())) < 400 << 10


@pytest.mark.slow
def test_jupyterlab_lists_the_extension_without_node(built: Built, python: Path) -> None:
    code = "import shutil; assert shutil.which('node') is None; from jupyterlab.labextensions import main; main()"
    said = call(python, "-c", code, "list", path=built.no_node, home=built.home, cwd=built.home)
    plain = re.sub(r"\x1b\[\d+m", "", said)
    assert re.search(r"cutegen-lab v[\d.]+ enabled OK", plain), plain
    assert str(python.parent.parent / EXTENSION).rsplit("/", 1)[0] in plain


def test_jupyter_server_enables_the_extension(built: Built, python: Path) -> None:
    code = (
        "from cutegen_lab.server.tutorials import tutorials; assert tutorials();"
        "from jupyter_server.extension.serverextension import main; main()"
    )
    said = call(python, "-c", code, "list", path=built.no_node, home=built.home, cwd=built.home)
    assert re.search(r"cutegen_lab\.server\W.*enabled", re.sub(r"\x1b\[\d+m", "", said)), said


def test_installed_package_finds_its_files(built: Built, python: Path) -> None:
    code = (
        "from importlib.resources import files; import cutegen_lab; root = files('cutegen_lab');"
        "assert (root / 'notebook/static/widget.js').is_file();"
        "assert any((root / 'prompts').iterdir());"
        "print(cutegen_lab.__file__)"
    )
    said = call(python, "-c", code, path=built.no_node, home=built.home, cwd=built.home)
    assert said.startswith(str(python.parent.parent)), f"not the installed package: {said}"
