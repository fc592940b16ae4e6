"""Cheats: the catalogue's attacks mounted on three honest kernels, and kernels that cheat at one problem each.

None may pass. A kernel's docstring (``kernels/NAME.py`` for ``problems/NAME.py``) and an attack's
(``cutegen_lab/attacks/texts``) say how it cheats, of which class it is, what should catch it and with which verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cutegen_lab.attacks import Attack, catalogue, mount, read_header
from cutegen_lab.attacks.catalogue import verdicts
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.problems import read_text
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for

FOLDER = Path(__file__).parent
SOFTMAX = FOLDER.parent / "cli" / "softmax_kernel.py"
KEYS = {"problem", "class", "defence", "verdicts", "not caught yet"}

# The honest kernels under attack: a bf16 softmax by hand, and the templates' fp32 elementwise chain and fp32 row sum.
VICTIMS = {
    "softmax": "import torch\n\n\ndef reference(x):  # x: bf16[24,160]\n    return torch.softmax(x, -1)\n",
    "gate": "import torch\n\n\ndef reference(x, y):  # x: f32[1501], y: f32[1501]\n    return x * torch.sigmoid(y)\n",
    "row_sum": "def reference(x):  # x: f32[24,300]\n    return x.sum(-1)\n",
}
CAGE_VICTIM = "row_sum"  # what an attack on the cage is mounted on makes no difference to it


class Cheat(NamedTuple):
    """``name`` is the attack's and its victim's, or the kernel's. ``open_reason``: why it is not caught yet."""

    name: str
    kind: str
    problem: str
    source: str
    expect: tuple[Verdict, ...]
    open_reason: str = ""


# Pairs that cannot be mounted, and why: a table, so that knowing the names takes no mounting.
NOT_APPLICABLE = {
    "inputs_through_bf16@softmax": "it needs a float32 input",
    "inputs_through_tf32@softmax": "it needs a float32 input",
    "output_through_bf16@softmax": "it needs a float32 output",
    "rounds_the_largest_workload@softmax": "it needs a float32 output",
    "output_with_eight_bits@gate": "it needs a 16-bit floating-point output",
    "output_with_eight_bits@row_sum": "it needs a 16-bit floating-point output",
}


def names() -> list[str]:
    """Every cheat that can be mounted; nothing is mounted and no problem is read."""
    pairs = [f"{attack.name}@{victim}" for attack in catalogue() for victim in _victims(attack)]
    return [*(pair for pair in pairs if pair not in NOT_APPLICABLE), *_written_by_hand()]


def open_reason(name: str) -> str:
    """Why a cheat is not caught yet; empty where it is. No problem is read."""
    attack = attacks().get(name.partition("@")[0])
    return attack.open_reason if attack else _by_hand(name)[1].get("not caught yet", "")


def kind(name: str) -> str:
    """Its class. No problem is read."""
    attack = attacks().get(name.partition("@")[0])
    return attack.kind if attack else _by_hand(name)[1]["class"]


def cheat(name: str) -> Cheat:
    """Raises KeyError for an unknown name, NotApplicable for one that cannot be mounted."""
    attack_name, _, victim = name.partition("@")
    if victim:
        attack = attacks()[attack_name]
        source = mount(attack, victim_problem(victim), honest(victim))
        return Cheat(name, attack.kind, VICTIMS[victim], source, attack.verdicts, attack.open_reason)
    source, header = _by_hand(name)
    problem = (FOLDER / "problems" / f"{name}.py").read_text()
    return Cheat(name, header["class"], problem, source, verdicts(header["verdicts"]), header.get("not caught yet", ""))


def corpus() -> Iterator[Cheat]:
    """All of it, one after another."""
    return map(cheat, names())


@cache
def victim_problem(victim: str) -> Problem:
    return read_text(VICTIMS[victim], name=victim)


@cache
def honest(victim: str) -> str:
    """The victim's honest kernel."""
    if victim == "softmax":
        return SOFTMAX.read_text()
    problem = victim_problem(victim)
    graph = read(problem)
    family = family_for(graph)
    return family.write(problem, graph, family.default_config(graph, problem.workload))


@cache
def attacks() -> Mapping[str, Attack]:
    return {attack.name: attack for attack in catalogue()}


def _by_hand(name: str) -> tuple[str, Mapping[str, str]]:
    """(its text, its front matter). Raises KeyError."""
    if name not in _written_by_hand():
        raise KeyError(name)
    source = (FOLDER / "kernels" / f"{name}.py").read_text()
    return source, read_header(source, KEYS)[1]


def _victims(attack: Attack) -> list[str]:
    return list(VICTIMS) if attack.is_kernel else [CAGE_VICTIM]


def _written_by_hand() -> list[str]:
    return sorted(path.stem for path in (FOLDER / "kernels").glob("*.py"))
