"""The table's verbs as methods of a class, for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeVar

from cutegen_lab.core.notes import place_text
from cutegen_lab.core.verbs import VERBS, Takes, Verb

_C = TypeVar("_C", bound=type)
_Method = Callable[..., Any]
_KIND = Parameter.POSITIONAL_OR_KEYWORD


def _parameter(name: str, kind: object, default: object = Parameter.empty) -> Parameter:
    return Parameter(name, _KIND, annotation=kind, default=default)


_PARAMETERS: Mapping[Takes, tuple[Parameter, ...]] = {
    "nothing": (),
    "scope": (_parameter("scope", str, ""),),
    "reason": (_parameter("reason", str, ""),),
    "source": (_parameter("text", str),),
    "candidate": (_parameter("candidate_id", str), _parameter("feedback", str, "")),
    "place": (
        _parameter("candidate_id", str), _parameter("lines", Sequence[int], ()), _parameter("text", str, ""),
        _parameter("name", str, ""),
    ),
    "note": (_parameter("note_id", str),),
}  # fmt: skip


def _performed(takes: Takes, values: Mapping[str, Any]) -> Iterable[Any]:
    """Argument and note of ``perform`` for a method's arguments."""
    if takes == "place":
        return place_text(values["candidate_id"], values["lines"], values["name"]), values["text"]
    return (values[each.name] for each in _PARAMETERS[takes])


def with_verbs(checked: Callable[[_Method], _Method] = lambda method: method, **flags: bool) -> Callable[[_C], _C]:
    """A class decorator. The class has ``perform(verb, argument, note, **flags)``, and gets a method for every verb of
    the table that it does not define itself: the verb's arguments, then ``flags`` with these defaults. ``checked``
    wraps each method."""
    more = tuple(_parameter(name, bool, default) for name, default in flags.items())

    def decorated(cls: _C) -> _C:
        for verb in VERBS:
            if verb not in vars(cls):
                setattr(cls, verb, checked(_method(verb, more)))
        return cls

    return decorated


def _method(verb: Verb, more: tuple[Parameter, ...]) -> _Method:
    own = _PARAMETERS[VERBS[verb].takes]
    signature = Signature([Parameter("self", _KIND), *own, *more])

    def method(*given: Any, **named: Any) -> Any:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        values = bound.arguments
        performed = _performed(VERBS[verb].takes, values)
        return values["self"].perform(verb, *performed, **{p.name: values[p.name] for p in more})

    method.__name__ = method.__qualname__ = verb
    method.__doc__ = f"{VERBS[verb].help[0].upper()}{VERBS[verb].help[1:]}."
    method.__annotations__ = {p.name: p.annotation for p in (*own, *more)}
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method
