"""Builds what Binder would: repo2docker's own steps for this repository, without Docker.

    python tests/packaging/binder_build.py FOLDER   (needs jupyter-repo2docker, git and Node; minutes)

FOLDER gets a clone of HEAD and a virtual environment in place of the image's. Packages of the system (``apt.txt``) are
named, not installed. Ends with the exit status of the first step that fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

from repo2docker.buildpacks import PythonBuildPack

ROOT = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    clone, prefix = folder / "clone", folder / "environment"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)  # noqa: S603, S607
    os.chdir(clone)
    pack = PythonBuildPack("buildpack-deps:jammy")
    if not pack.detect():
        print("repo2docker would not build this repository as a Python project")
        return 1
    if f"{sys.version_info.major}.{sys.version_info.minor}" != pack.python_version:
        print(f"run this with Python {pack.python_version}, as binder/runtime.txt says")
        return 1
    venv.create(prefix, with_pip=True)
    places = {"KERNEL_PYTHON_PREFIX": str(prefix), "NB_PYTHON_PREFIX": str(prefix)}
    environment = os.environ | places | {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "VIRTUAL_ENV": str(prefix)}
    for user, step in pack.get_preassemble_scripts():
        print(f"not run here ({user}): {' '.join(step.split())}")
    steps = [step for _, step in pack.get_assemble_scripts()] + [f"./{path}" for path in pack.get_post_build_scripts()]
    for step in steps:
        began = time.monotonic()
        print(f"$ {step}", flush=True)
        status = subprocess.run(["bash", "-c", step], env=environment, check=False).returncode  # noqa: S603, S607
        print(f"exit status {status} after {time.monotonic() - began:.0f} s", flush=True)
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
