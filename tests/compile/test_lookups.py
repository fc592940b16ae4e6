"""Names that a candidate works out are held to the gate's rules when they are looked up."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace

import pytest

from cutegen_lab.compile.lookups import guarded

OWN = guarded(__name__)


class Mine:
    value = 1


def test_harmless_look_ups_work_as_pythons_own() -> None:
    thing = SimpleNamespace(a=1)
    assert OWN["getattr"](thing, "a") == 1 and OWN["getattr"](thing, "b", 2) == 2
    assert OWN["hasattr"](thing, "a") and not OWN["hasattr"](thing, "b")
    OWN["setattr"](thing, "b", 3)
    OWN["setattr"](Mine, "value", 4)
    assert OWN["vars"](thing) == {"a": 1, "b": 3} and Mine.value == 4
    with pytest.raises(AttributeError):
        OWN["getattr"](thing, "c")


@pytest.mark.parametrize("name", ["__globals__", "__subclasses__", "__builtins__", "sys", "os", "gi_frame"])
def test_pythons_insides_are_not_found_by_name(name: str) -> None:
    for look in (OWN["getattr"], OWN["hasattr"]):
        with pytest.raises(TypeError, match=f"attribute .{name} is not allowed"):
            look(Mine, name)
    with pytest.raises(TypeError, match="not allowed"):
        OWN["setattr"](Mine(), name, 1)


def test_others_modules_and_classes_are_not_changed() -> None:
    for thing in (math, SimpleNamespace, int):
        with pytest.raises(TypeError, match="a candidate does not change the DSL"):
            OWN["setattr"](thing, "floor", None)
    with pytest.raises(TypeError, match="write the names that you use"):
        OWN["vars"](sys)
