"""How a value depends on addresses: a linear combination of base addresses plus a plain number.

A :data:`Form` is that sum: ``(("t0", 1),)`` is a pointer into tensor 0, ``()`` a plain number. A value has one form on
each path to it (:data:`Forms`), or any (:data:`ANY`): it may depend on bits of an address. All arithmetic is that of
two's complement, so that a difference of two pointers into one tensor is a plain number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

Form = tuple[tuple[str, int], ...]
Forms = frozenset[Form] | None
ANY: Forms = None
NOTHING: Forms = frozenset()  # forms of a register without a value yet
PLAIN: Forms = frozenset({()})

ALIGNMENT = 16  # minimum alignment of a base
_OPAQUE = "~"  # prefix of values that hardware chooses: even the difference of two depends on the choice
_MOST_FORMS = 16
_MOST_TIMES = 16


def base(name: str) -> Forms:
    return frozenset({((name, 1),)})


def opaque(name: str) -> Forms:
    """A value that hardware is free to choose: a policy, an mbarrier's state."""
    return base(_OPAQUE + name)


def is_plain(forms: Forms) -> bool:
    return forms is not None and forms <= frozenset({()})


def is_address(forms: Forms) -> bool:
    """True if the value is at most one address plus a plain number on every path."""
    return forms is not None and all(sum(times for _, times in form) <= 1 and len(form) <= 1 for form in forms)


def is_opaque(forms: Forms, name: str) -> bool:
    """True if the value is the unchanged value ``opaque(name)``, or a plain number."""
    return forms is not None and forms <= {((_OPAQUE + name, 1),), ()}


def names(forms: Forms) -> set[str]:
    return {name for form in forms or () for name, _ in form}


def join(*several: Forms) -> Forms:
    found = frozenset[Form]()
    for forms in several:
        if forms is None:
            return ANY
        found |= forms
    return found if len(found) <= _MOST_FORMS else ANY


def times(forms: Forms, factor: int) -> Forms:
    return ANY if forms is None else _each(forms, PLAIN, lambda a, _: _sum(a, (), factor, 0))


def add(a: Forms, b: Forms) -> Forms:
    return _each(a, b, lambda x, y: _sum(x, y, 1, 1))


def subtract(a: Forms, b: Forms) -> Forms:
    return _each(a, b, lambda x, y: _sum(x, y, 1, -1))


def aligned(forms: Forms) -> bool:
    """True if every base is a multiple of :data:`ALIGNMENT`, so that low bits are those of a plain number."""
    return forms is not None and not any(name.startswith(_OPAQUE) for name in names(forms))


def comparison(a: Forms, b: Forms, ordered: bool, narrow: bool) -> Forms:
    """Forms of ``a < b`` (``ordered``) or ``a == b``: plain if both have the same bases. ``narrow``: compared modulo
    2³², where order is not preserved."""
    if is_plain(a) and is_plain(b):
        return PLAIN
    far = a is not None and b is not None and is_plain(subtract(a, b))
    return PLAIN if far and not (ordered and (narrow or not is_address(a))) else ANY


def _each(a: Forms, b: Forms, made: Callable[[Form, Form], Form | None]) -> Forms:
    if a is None or b is None:
        return ANY
    found = {made(x, y) for x in a for y in b}
    if None in found or len(found) > _MOST_FORMS:
        return ANY
    return frozenset(form for form in found if form is not None)


def _sum(a: Form, b: Form, of_a: int, of_b: int) -> Form | None:
    """``of_a`` · ``a`` + ``of_b`` · ``b``. None if a factor is too large, or a value that hardware chooses cancels."""
    total = Counter[str]()
    for form, factor in ((a, of_a), (b, of_b)):
        for name, many in form:
            total[name] += many * factor
    if any(abs(many) > _MOST_TIMES for many in total.values()):
        return None
    if any(not many and name.startswith(_OPAQUE) for name, many in total.items()):
        return None
    return tuple(sorted((name, many) for name, many in total.items() if many))
