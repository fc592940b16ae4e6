"""Functions that expressions of a spec may call: their arguments, and their PyTorch text."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.cutespec.form import Apply, Place, Setting

DIM: tuple[type, ...] = (int, tuple)
NUMBER: tuple[type, ...] = (int, float)
Keywords = Mapping[str, tuple[type, ...]]
_DIMS: Keywords = {"dim": DIM, "keepdim": (bool,)}
_NONE: Keywords = {}
_KINDS = {int: "a whole number", float: "a number", tuple: "a list such as [0, 1]", bool: "true or false",
          str: 'text in "quotes"'}  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A function of ``least`` to ``most`` tensor arguments, with ``keywords`` and their types. ``text`` writes the call
    from the texts of the arguments and keywords (``", dim=-1"`` or nothing)."""

    text: Callable[[list[str], str], str]
    least: int
    most: int
    keywords: Keywords = field(default_factory=dict)
    required: tuple[str, ...] = ()


def _plain(
    spelling: str, least: int, most: int = 0, keywords: Keywords = _NONE, required: tuple[str, ...] = ()
) -> Function:
    def text(arguments: list[str], named: str) -> str:
        return f"{spelling}({', '.join(arguments)}{named})"

    return Function(text, least, most or least, keywords, required)


def _infix(sign: str) -> Function:
    return Function(lambda a, _: f"({a[0]} {sign} {a[1]})", 2, 2)


def _normalised(spelling: str, most: int) -> Function:
    """A norm over the last dimension with a weight (and bias); PyTorch needs the dimension's size as an argument."""

    def text(arguments: list[str], named: str) -> str:
        return f"{spelling}({arguments[0]}, {arguments[0]}.shape[-1:], {', '.join([*arguments[1:]])}{named})"

    return Function(text, 2, most, {"eps": NUMBER})


def _named(prefix: str, names: str, keywords: Keywords = _NONE) -> dict[str, Function]:
    return {name: _plain(prefix + name, 1, keywords=keywords) for name in names.split()}


_SPREAD = {**_DIMS, "correction": NUMBER}
FUNCTIONS: Mapping[str, Function] = {
    "add": _infix("+"), "subtract": _infix("-"), "multiply": _infix("*"), "divide": _infix("/"), "power": _infix("**"),
    "matmul": _infix("@"), "less": _infix("<"), "less_equal": _infix("<="), "greater": _infix(">"),
    "greater_equal": _infix(">="), "equal": _infix("=="), "not_equal": _infix("!="),
    "negative": Function(lambda a, _: f"(-{a[0]})", 1, 1), "transpose": Function(lambda a, _: f"{a[0]}.mT", 1, 1),
    **_named("torch.", "exp exp2 log log2 log1p expm1 sqrt rsqrt tanh sigmoid erf sin cos abs floor ceil trunc round "
             "reciprocal"),
    **_named("F.", "relu relu6 silu mish selu softsign logsigmoid hardswish hardsigmoid tanhshrink"),
    "gelu": _plain("F.gelu", 1, keywords={"approximate": (str,)}),
    "elu": _plain("F.elu", 1, keywords={"alpha": NUMBER}),
    "leaky_relu": _plain("F.leaky_relu", 1, keywords={"negative_slope": NUMBER}),
    "softplus": _plain("F.softplus", 1, keywords={"beta": NUMBER, "threshold": NUMBER}),
    "hardtanh": _plain("F.hardtanh", 1, keywords={"min_val": NUMBER, "max_val": NUMBER}),
    "clamp": _plain("torch.clamp", 1, keywords={"min": NUMBER, "max": NUMBER}),
    "maximum": _plain("torch.maximum", 2), "minimum": _plain("torch.minimum", 2), "where": _plain("torch.where", 3),
    **_named("torch.", "sum mean amax amin logsumexp", _DIMS), **_named("torch.", "var std", _SPREAD),
    "softmax": _plain("torch.softmax", 1, keywords={"dim": (int,)}, required=("dim",)),
    "log_softmax": _plain("torch.log_softmax", 1, keywords={"dim": (int,)}, required=("dim",)),
    "rms_norm": _normalised("F.rms_norm", 2), "layer_norm": _normalised("F.layer_norm", 3),
    "linear": _plain("F.linear", 2, 3), "bmm": _plain("torch.bmm", 2),
}  # fmt: skip
_OPERATORS = {"add", "subtract", "multiply", "divide", "power", "negative", "transpose", "matmul"}
_COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
NAMED = {name: function for name, function in FUNCTIONS.items() if name not in _OPERATORS | _COMPARISONS}
_OF_NUMBERS: Mapping[str, Callable[..., float]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "power": operator.pow, "negative": operator.neg, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
_MAY_TAKE_NUMBERS = {*_OF_NUMBERS, "where"}
_INSTEAD = {"maximum": "Write clamp(x, min=…).", "minimum": "Write clamp(x, max=…)."}


def folded(apply: Apply, numbers: Sequence[float | None]) -> float | None:
    """Value of ``apply`` if all arguments are numbers; None if one is a tensor (None). Evaluated in fp64, because
    Python would compute 9 ** 9 ** 9 exactly, which takes too long. Raises SpecError if fp64 cannot represent the
    value."""
    if apply.function not in _OF_NUMBERS or None in numbers:
        return None
    try:
        found = _OF_NUMBERS[apply.function](*numbers)
    except ArithmeticError as error:
        raise apply.place.error(f"{apply.function} of {_and(numbers)}: {error.args[-1]}") from None
    if isinstance(found, complex) or not math.isfinite(found):
        raise apply.place.error(f"{apply.function} of {_and(numbers)} cannot be represented in fp64")
    return float(found)


def _and(numbers: Sequence[float | None]) -> str:
    return " and ".join(f"{number:g}" for number in numbers if number is not None)


def call(apply: Apply, arguments: list[str], numbers: Sequence[float | None]) -> str:
    """PyTorch text of ``apply`` from the texts of its arguments. ``numbers``: value of each argument that is a number,
    else None. Raises SpecError."""
    name, place = apply.function, apply.place
    function = FUNCTIONS.get(name)
    if function is None:
        every = f"There are: {', '.join(sorted(set(FUNCTIONS) - _OPERATORS))}."
        raise place.error(f"there is no function {name!r}", did_you_mean(name, FUNCTIONS, 0.5) or every)
    if not function.least <= len(arguments) <= function.most:
        takes = str(function.least) if function.least == function.most else f"{function.least} to {function.most}"
        raise place.error(f"{name} takes {takes} tensors, not {len(arguments)}")
    for position, number in enumerate(numbers, 1):
        if number is not None and name not in _MAY_TAKE_NUMBERS:
            hint = _INSTEAD.get(name, "Write its value." if len(numbers) == 1 else "")
            raise place.error(f"{name} takes tensors, but argument {position} is the number {number:g}", hint)
    for missing in (k for k in function.required if k not in apply.keywords):
        raise place.error(f"{name} needs {missing}=…", f"Write {name}(x, {missing}=-1).")
    named = "".join(f", {key}={_keyword(name, function, key, v, place)}" for key, v in apply.keywords.items())
    return function.text(arguments, named)


def _keyword(name: str, function: Function, key: str, value: Setting, place: Place) -> str:
    allowed = function.keywords.get(key)
    if allowed is None:
        has = ", ".join(function.keywords) or "none"
        raise place.error(f"{name} has no keyword {key!r}", f"It has: {has}.")
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        wanted = " or ".join(_KINDS[kind] for kind in allowed)
        raise place.error(f"{name}'s {key} is {value!r}", f"It must be {wanted}.")
    return repr(list(value)) if isinstance(value, tuple) else repr(value)
