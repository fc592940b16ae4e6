"""Argument checks for methods that an analyst calls in a cell: an error is one line with the usage, not a traceback."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from cutegen_lab.core.errors import CutegenError, InputError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.views.hints import NOTEBOOK, advised

_P = ParamSpec("_P")
_R = TypeVar("_R")
_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "True or False",
    Path: "a path",
    NoneType: "None",
}
_SHOWN = 40  # maximum number of characters of a wrong value in a message


def verb(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorator that checks arguments against the annotations of a method. The method then raises InputError for wrong
    ones."""
    signature = inspect.signature(method)

    @wraps(method)
    def checked(*given: _P.args, **named: _P.kwargs) -> _R:
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            unknown = next((name for name in named if name not in signature.parameters), "")
            hint = f"{did_you_mean(unknown, signature.parameters)} {_usage(signature, method.__name__)}".strip()
            raise InputError(f"{method.__name__}: {error}", hint) from None
        wanted = _hints(method)
        for name, value in bound.arguments.items():
            if name in wanted and not _fits(value, wanted[name]):
                what = f"{method.__name__}: {name} is {_brief(value)}, not {_words(wanted[name])}"
                raise InputError(what, _usage(signature, method.__name__))
        try:
            return method(*given, **named)
        except CutegenError as error:
            raise advised(error, NOTEBOOK)  # noqa: B904 - the same error

    return checked


def _usage(signature: inspect.Signature, name: str) -> str:
    taken = [p.replace(annotation=inspect.Parameter.empty) for p in list(signature.parameters.values())[1:]]
    return f"Write {name}({', '.join(map(str, taken))})."


def _hints(method: Callable[..., Any]) -> dict[str, Any]:
    """Annotations of the parameters. The return annotation is skipped: its name may be imported for type checkers
    only."""
    taken = {name: text for name, text in method.__annotations__.items() if name != "return"}
    return get_type_hints(type("taken", (), {"__annotations__": taken, "__module__": method.__module__}))


def _fits(value: object, wanted: Any) -> bool:
    if isinstance(wanted, UnionType):
        return any(_fits(value, one) for one in get_args(wanted))
    if get_origin(wanted) is Sequence:
        (item,) = get_args(wanted)
        return isinstance(value, Sequence) and not isinstance(value, str) and all(_fits(v, item) for v in value)
    if wanted in (int, float):  # accepts NumPy's numbers too; a boolean is not a number
        return isinstance(value, Integral if wanted is int else Real) and not isinstance(value, bool)
    return isinstance(value, wanted)


def _words(wanted: Any) -> str:
    if isinstance(wanted, UnionType):
        return " or ".join(_words(one) for one in get_args(wanted))
    if get_origin(wanted) is Sequence:
        return f"a list whose every item is {_words(get_args(wanted)[0])}"
    return _WORDS.get(wanted) or f"a {wanted.__name__}"


def _brief(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
