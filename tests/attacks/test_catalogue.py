"""The catalogue's front matter is complete, and every text is one that can be mounted."""

from __future__ import annotations

import ast

import pytest

from cutegen_lab.attacks import Attack, catalogue, defence_of, read_header
from cutegen_lab.core.verdict import Verdict

ATTACKS = catalogue()


def test_there_are_many_and_they_have_names_of_their_own() -> None:
    assert len(ATTACKS) >= 60
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_says_what_it_does_and_what_catches_it(attack: Attack) -> None:
    assert attack.what and attack.kind and attack.defence and attack.verdicts
    assert Verdict.PASSED not in attack.verdicts
    assert bool(attack.behind_gate) != attack.is_kernel
    ast.parse(attack.text)


def test_every_verdict_against_a_candidate_has_a_defence() -> None:
    ours = {Verdict.PASSED, Verdict.CANCELLED, Verdict.DEVICE_ERROR}
    assert {v for v in Verdict if not defence_of(v)} == ours


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"""Cheats."""\n', "lacks class, defence, verdicts"),
        ('"""Cheats.\n\nclass: a\ndefence: b\nverdicts: c\nwhatever\n"""\n', "'whatever'"),
    ],
)
def test_wrong_front_matter_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_header(text, {"class", "defence", "verdicts"})
