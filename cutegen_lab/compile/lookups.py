"""``getattr``, ``hasattr``, ``setattr`` and ``vars`` for candidates: attribute names computed at run time are checked
by the rule that the gate applies to literal names.

Like the gate they give a message with the line; the security boundary is the cage.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import ModuleType
from typing import Any

from cutegen_lab.compile.gate import forbidden_attribute


def guarded(own_module: str) -> dict[str, Callable[..., Any]]:
    """Functions to set in the candidate's module, called ``own_module``, before it is executed. They raise TypeError
    for what is not allowed."""

    def checked_getattr(thing: Any, name: str, *default: Any) -> Any:
        _check("getattr", name)
        return builtins.getattr(thing, name, *default)

    def checked_hasattr(thing: Any, name: str) -> bool:
        _check("hasattr", name)
        return builtins.hasattr(thing, name)

    def checked_setattr(thing: Any, name: str, value: Any) -> None:
        _check("setattr", name)
        if isinstance(thing, ModuleType) or (isinstance(thing, type) and thing.__module__ != own_module):
            kind = "module" if isinstance(thing, ModuleType) else "class"
            raise TypeError(
                f"setattr on the {kind} {thing.__name__}: a candidate does not change the DSL. Define a function of "
                "your own, and call that."
            )
        builtins.setattr(thing, name, value)

    def checked_vars(thing: Any) -> Any:
        if isinstance(thing, ModuleType):
            raise TypeError(f"vars of the module {thing.__name__}: write the names that you use.")
        return builtins.vars(thing)

    return {
        "getattr": checked_getattr, "hasattr": checked_hasattr, "setattr": checked_setattr, "vars": checked_vars,
    }  # fmt: skip


def _check(what: str, name: object) -> None:
    if isinstance(name, str) and forbidden_attribute(name):
        raise TypeError(f"{what} of the attribute .{name} is not allowed. Write the kernel without Python's internals.")
