"""Scopes of an approval as they are typed."""

from __future__ import annotations

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.scopes import Scope, scope_of


@pytest.mark.parametrize(
    ("text", "scope", "said"),
    [
        ("3 steps", Scope("steps", 3), "the next 3 steps"),
        ("1", Scope("steps", 1), "the next step"),
        ("within 5%", Scope("floor", within=0.05), "until within 5% of the floor"),
        ("Until  within 2.5 % of the floor", Scope("floor", within=0.025), "until within 2.5% of the floor"),
        ("until slower", Scope("slower"), "until slower"),
    ],
)
def test_a_scope_is_read_and_said_so_that_it_can_be_read_again(text: str, scope: Scope, said: str) -> None:
    assert scope_of(text) == scope and str(scope) == said
    assert scope_of(said.replace("the next step", "1 step") if scope.steps == 1 else said) == scope


def test_no_scope_and_what_is_none() -> None:
    assert scope_of("  ") is None
    for text in ("0", "-1 steps", "within 5", "forever", "within nan%", "99999999 steps"):
        with pytest.raises(InputError, match="is no scope of an approval"):
            scope_of(text)
