"""Configs of the kernels of ``foreign_cases`` and of later ones, drawn at random before they were timed.

    python -m benchmarks.perfmodel.foreign_spaces FOLDER CUTLASS [SEED]   (needs the DSL; no GPU; five minutes)

``prediction_order`` says how they are timed and compared with predictions.

The configs that stand beside the first kernels are four to six each: a wrong pair moves a rank correlation of so few by
0.06 to 0.2. Here each kernel's keywords have values, in ``foreign_kernels/spaces.json`` or beside the kernel, and at
most :data:`EACH` of the combinations that its rule allows are drawn by ``random.Random``. CUTLASS is a checkout of
NVIDIA/cutlass. ``foreign_kernels/unseen`` were written by a language model that had no access to the time model.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.harness import command_line, for_each, read_json
from benchmarks.perfmodel.counters_cases import Case, write
from benchmarks.perfmodel.foreign_cases import KERNELS, blind, cases, described, nvidia

SEED, EACH = 20261202, 16


def allowed(said: Mapping[str, Any]) -> list[dict[str, int]]:
    """All configs of a kernel's ``space`` that its ``rule``, an expression of the keywords, allows."""
    space = said["space"]
    every = (dict(zip(space, values, strict=True)) for values in product(*space.values()))
    return [config for config in every if eval(said["rule"] or "True", {}, dict(config))]  # noqa: S307 - of this folder


def unseen() -> Iterator[tuple[Case, Mapping[str, Any]]]:
    """(a case without a config, its space) of the kernels that have their space beside them."""
    for path in sorted((KERNELS / "unseen").glob("*.json")):
        said = read_json(path)
        yield described(path, said, path.with_suffix(".py.txt").read_text()), said


def drawn(checkout: Path, seed: int) -> Iterator[Case]:
    """At most :data:`EACH` configs of each kernel."""
    first = {case.group: case for case in (*cases(), *blind(), *nvidia(checkout))}
    spaces: dict[str, Mapping[str, Any]] = read_json(KERNELS / "spaces.json")
    every = [(case, spaces[name]) for name, case in sorted(first.items())]
    for case, said in [*every, *unseen()]:
        configs = allowed(said)
        random.Random(f"{seed} {case.group}").shuffle(configs)  # noqa: S311 - the same every time
        for number, config in enumerate(configs[:EACH]):
            yield replace(case, name=f"{case.group}-{number}", config=config)


def main(folder: Path, cutlass: Path, seed: int = SEED) -> None:
    cases_of_seed = drawn(cutlass, seed)
    written = for_each(cases_of_seed, folder, lambda case, compiler: write(case, folder, compiler, gated=False))
    print(f"{sum(written)} of {len(written)} configs")


if __name__ == "__main__":
    command_line(main)
