"""The configs of a kernel: the product of its parameters' domains without those that its constraints refuse."""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hashing import canonical_json
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.syntax import launch_parameters, parse

LISTED = 20_000  # maximum number of configs that are listed; of a larger product a sample is searched


def key(config: Config) -> str:
    """Text that is equal for equal configs, whatever the order of their names."""
    return canonical_json(dict(config))


def brief(config: Config) -> str:
    return " ".join(f"{name}={value}" for name, value in config.items()) or "its only config"


@dataclass(frozen=True)
class Tunables:
    """The parameters that a kernel's text declares."""

    domains: Mapping[str, tuple[Scalar, ...]]
    """Possible values by parameter."""
    default: Config
    """Values that ``launch`` uses by default."""


def read_tunables(source: str) -> Tunables:
    """``TUNABLE`` and the defaults of ``launch``, read from the text without running it.

    Raises InputError if there is no TUNABLE, it is not a literal, or launch() lacks one of its names.
    """
    try:
        tree = parse(source)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"the kernel is not Python: {error}", "Correct it.") from None
    defaults = _defaults(tree)
    found = next(_assigned(tree, "TUNABLE"), None)
    if found is None:
        has = f"launch() has {', '.join(defaults)}" if defaults else "launch() has no tunable keyword either"
        raise InputError(f"the kernel has no TUNABLE, so there is nothing to search; {has}", Hint(Advice.MAKE_TUNABLE))
    try:
        value = ast.literal_eval(found)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        raise InputError(
            f"line {found.lineno}: TUNABLE is computed, but it is read without running the kernel's text",
            'Write it as a literal: TUNABLE = {"threads": (64, 128, 256)}.',
        ) from None
    domains = _domains(value, found.lineno)
    if lacking := [name for name in domains if name not in defaults]:
        raise InputError(
            f"TUNABLE names {', '.join(lacking)}, but launch() has no such keyword with a literal default",
            f"Add {lacking[0]}: cutlass.Constexpr = {domains[lacking[0]][0]!r} to launch().",
        )
    return Tunables(domains, {name: defaults[name] for name in domains})


def _domains(value: object, line: int) -> dict[str, tuple[Scalar, ...]]:
    ok = isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(values, tuple | list) and values
        and all(isinstance(v, int | float | bool | str) for v in values) for name, values in value.items()
    )  # fmt: skip
    if not isinstance(value, dict) or not ok or not value:
        raise InputError(
            f"line {line}: TUNABLE must map each name to a tuple of numbers or strings",
            'Write it as TUNABLE = {"threads": (64, 128, 256)}.',
        )
    return {name: tuple(dict.fromkeys(values)) for name, values in value.items()}


def _assigned(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            value = getattr(node, "value", None)
            if isinstance(value, ast.expr):
                yield value


def _defaults(tree: ast.Module) -> dict[str, Scalar]:
    """Keywords of ``launch`` whose default is a literal."""
    found: dict[str, Scalar] = {}
    for name, default in launch_parameters(tree):
        try:
            value = ast.literal_eval(default) if default is not None else None
        except ValueError:
            continue
        if isinstance(value, int | float | bool | str):
            found[name] = value
    return found


@dataclass(frozen=True)
class Space:
    """The configs of a kernel that may be searched."""

    domains: Mapping[str, tuple[Scalar, ...]]
    """Possible values by parameter."""
    configs: tuple[Config, ...]
    """The configs, ``default`` first."""
    total: int
    """Number of configs before constraints, plus the default if it lies outside."""
    sampled: bool = False
    """Whether there were too many to list, so that ``configs`` is a sample."""

    @property
    def default(self) -> Config:
        return self.configs[0]

    @classmethod
    def build(
        cls, domains: Mapping[str, Sequence[Scalar]], default: Config,
        feasible: Callable[[Config], bool] = lambda config: True, seed: int = 0,
    ) -> Space:  # fmt: skip
        """The feasible configs, or a sample of them if there are too many. Raises InputError if there are none."""
        plain = {name: tuple(values) for name, values in domains.items()}
        total = math.prod(len(values) for values in plain.values())
        every = _sampled(plain, seed) if total > LISTED else _listed(plain)
        first = [dict(default)] if feasible(default) else []
        rest = [c for c in every if c != default and feasible(c)]
        if not first and not rest:
            raise InputError(
                f"none of the {total} configs of {', '.join(plain)} is feasible for this problem",
                "Widen the domains, loosen the constraints, or give another kernel.",
            )
        beyond = bool(first) and any(value not in plain.get(name, ()) for name, value in default.items())
        return cls(plain, (*first, *rest), total + beyond, total > LISTED)

    def encode(self, config: Config) -> tuple[float, ...]:
        """A config as a vector for a model of times: log numbers and one-hot choices, each from 0 to 1."""
        point: list[float] = []
        for name, values in self.domains.items():
            value = config.get(name, values[0])
            if len(values) == 1:
                continue
            if any(isinstance(v, bool | str) for v in values):
                point += [float(v == value) for v in values[1:]]
            else:
                point.append(_between(float(value), [float(v) for v in values]))
        return tuple(point)


def _between(value: float, values: Sequence[float]) -> float:
    low, high = min(values), max(values)
    if low > 0:
        low, high, value = math.log2(low), math.log2(high), math.log2(max(value, 1e-9))
    return (value - low) / (high - low) if high > low else 0.0


def _listed(domains: Mapping[str, tuple[Scalar, ...]]) -> Iterator[Config]:
    for values in product(*domains.values()):
        yield dict(zip(domains, values, strict=True))


def _sampled(domains: Mapping[str, tuple[Scalar, ...]], seed: int) -> Iterator[Config]:
    draw = random.Random(seed)  # noqa: S311 - the same every time
    seen: set[tuple[Scalar, ...]] = set()
    for _ in range(2 * LISTED):
        values = tuple(draw.choice(of) for of in domains.values())
        if values not in seen and len(seen) < LISTED:
            seen.add(values)
            yield dict(zip(domains, values, strict=True))
