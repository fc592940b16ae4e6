"""Turns a kernel without TUNABLE into a template, checking every step.

A literal becomes a parameter only if the text with it compiles, at the old values, to the same PTX and launches. A
value stays in a parameter's domain only if the kernel compiles with it and gives right answers.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cutegen_lab.core.artifact import Artifact, Build, CompileFailure
from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.problem import Workload
from cutegen_lab.core.protocols import Cancel, Compiler, Say
from cutegen_lab.tuning.refactor.divides import even_divisions, holds
from cutegen_lab.tuning.refactor.knobs import MOST, Knob, find
from cutegen_lab.tuning.refactor.proposals import proposed
from cutegen_lab.tuning.refactor.rewrite import CannotPlumb, rewrite
from cutegen_lab.tuning.refactor.text import KernelText
from cutegen_lab.tuning.space import Space

Right = Callable[[Artifact], str]
"""Returns why an artifact's answers are wrong; empty if they are right."""
Asks = Callable[[Sequence[str]], str]
"""A model's answer, given what is known already; :mod:`~cutegen_lab.tuning.refactor.proposals` has its form."""
_NEAREST = 2  # number of configs that test a value which is only allowed together with other changes
_MIXED = 4  # number of configs with several values changed, tried at the end


@dataclass(frozen=True)
class Kept:
    """A parameter of the template."""

    name: str
    """Name of the parameter."""
    line: int
    """Line of its first literal, from 1."""
    value: int
    """Its original value."""
    domain: tuple[Scalar, ...]
    """Values with which the kernel still passed its checks."""
    places: int
    """Number of literals replaced."""
    refused: tuple[tuple[int, str], ...] = ()
    """Values removed from the domain, with reasons."""


@dataclass(frozen=True)
class Dropped:
    """A literal that stays a literal."""

    name: str
    """Name that it would have had."""
    line: int
    """Line of the literal, from 1."""
    value: int
    """Its value."""
    why: str
    """Why it stays."""


@dataclass(frozen=True)
class Refactored:
    """Result of stage one."""

    source: str
    """The template; the original text if nothing became a parameter."""
    kept: Sequence[Kept]
    """The parameters."""
    dropped: Sequence[Dropped]
    """Literals that stay."""
    constraints: Sequence[str] = ()
    """Expressions that every config must satisfy."""
    mixed: tuple[int, int] = (0, 0)
    """Number of configs with several values changed that were tested at the end, and of those that were right."""


def refactor(
    source: str, own: Sequence[Workload], judged: Sequence[Workload], arch: str, compiler: Compiler, right: Right,
    say: Say, cancel: Cancel | None = None, ask: Asks | None = None,
) -> Refactored:  # fmt: skip
    """``own``: the analyst's workloads; ``judged``: all that ``right`` tests; ``ask`` may propose more parameters.

    Raises InputError for a text that has a TUNABLE, does not compile or is not right as it is; CageError, Cancelled.
    """
    return _Refactoring(source, own, judged, arch, compiler, right, say, cancel or threading.Event(), ask).run()


@dataclass(frozen=True)
class _Tried:
    """Result of testing a knob's other values; ``effect``: whether the right ones change the PTX."""

    knob: Knob
    right: tuple[int, ...] = ()
    together: tuple[int, ...] = ()
    refused: tuple[tuple[int, str], ...] = ()
    effect: bool = False


class _Refactoring:
    def __init__(
        self, source: str, own: Sequence[Workload], judged: Sequence[Workload], arch: str, compiler: Compiler,
        right: Right, say: Say, cancel: Cancel, ask: Asks | None,
    ) -> None:  # fmt: skip
        self.text, self.own, self.arch = KernelText(source), own, arch
        self.every = tuple({w.name: w for w in (*own, *judged)}.values())
        self.compiler, self.right, self.say, self.cancel, self.ask = compiler, right, say, cancel, ask
        if "TUNABLE" in self.text.constants:
            raise InputError("the kernel has a TUNABLE already", "Tune it as it is.")
        self.kept: list[tuple[Knob, tuple[tuple[int, str], ...]]] = []  # each knob with its refused values
        self.dropped: list[Dropped] = []
        self.constraints: list[str] = []
        self.together: dict[str, tuple[int, ...]] = {}  # values that constraints allow only together with other changes

    def run(self) -> Refactored:
        self.old = self._compiled(self.text.source, {}, self.own)
        if isinstance(self.old, CompileFailure):
            raise InputError(f"the kernel does not compile: {self.old.reason}", "Correct it first.")
        found = find(self.text)
        self.say(f"{len(found)} possible parameters: {', '.join(k.name for k in found) or 'none'}")
        found = self._same([*found, *self._asked_for(found)])
        self.values = {k.name: k.value for k in found}
        self.constraints = self._divisions(found)
        if why := self._wrong(self._template(found), {}):
            raise InputError(f"the kernel is not right as it is: {why}", Hint(Advice.SEE_EVIDENCE))
        for knob in found:
            if len(self.kept) == MOST:
                self._drop(knob, f"{MOST} parameters are enough")
            elif not any(site in other.sites for other, _ in self.kept for site in knob.sites) or not knob.sites:
                self._try(knob)
            else:
                owner = next(o for o, _ in self.kept if any(s in o.sites for s in knob.sites))
                self._drop(knob, f"it changes together with {owner.name}")
        if not self.kept:
            return Refactored(self.text.source, (), self.dropped)
        return self._whole()

    # --- private ------------------------------------------------------------------------------------------------------

    def _asked_for(self, found: Sequence[Knob]) -> list[Knob]:
        """Knobs that a model proposes beyond ``found``; a literal that belongs to a parameter is not taken again."""
        if self.ask is None:
            return []
        answer = self.ask([f"{k.name} = {k.value} on line {k.line}" for k in found])
        taken = {site for knob in found for site in knob.sites} | {k.name for k in found}
        new = list[Knob]()
        for one in proposed(answer, self.text):
            if isinstance(one, str):
                self.say(f"proposed, but {one}")
            elif one.name in taken or not taken.isdisjoint(one.sites):
                self.say(f"proposed, but {one.name} has the name or a literal of another parameter")
            else:
                new.append(one)
                taken |= {one.name, *one.sites}
        self.say(f"{len(new)} more parameters are proposed: {', '.join(k.name for k in new) or 'none'}")
        return new

    def _same(self, found: Sequence[Knob]) -> list[Knob]:
        """The knobs that can be parameters without changing the PTX."""
        possible = []
        for knob in found:
            try:
                rewrite(self.text, [knob])
            except CannotPlumb as error:
                self._drop(knob, str(error))
            else:
                possible.append(knob)
        if not possible or not self._differs(possible):
            return possible
        same = []
        for knob in possible:
            if why := self._differs([knob]):
                self._drop(knob, why)
            else:
                same.append(knob)
        return same

    def _differs(self, knobs: Sequence[Knob]) -> str:
        """How the text with ``knobs`` as parameters differs from the old one; empty if it does not."""
        try:
            new = self._compiled(rewrite(self.text, knobs), {}, self.own)
        except CannotPlumb as error:
            return str(error)
        if isinstance(new, CompileFailure):
            return f"as a parameter it does not compile: {new.reason}"
        assert isinstance(self.old, Artifact)
        apart = [name for name, build in self.old.builds.items() if not same_machine_code(build, new.builds[name])]
        return f"as a parameter it compiles to other PTX for {', '.join(apart)}" if apart else ""

    def _divisions(self, knobs: Sequence[Knob]) -> list[str]:
        if "constraints" in self.text.functions or not knobs:
            return []
        template = KernelText(rewrite(self.text, knobs))
        return even_divisions(template, [k.name for k in knobs], {k.name: k.value for k in knobs}, self.own)

    def _template(self, knobs: Sequence[Knob]) -> str:
        return rewrite(self.text, knobs, self._constraints(knobs)) if knobs else self.text.source

    def _constraints(self, knobs: Sequence[Knob]) -> list[str]:
        """Divisions by the parameters ``knobs``, and by literals that could have been parameters, with their
        numbers."""
        if "constraints" in self.text.functions:
            return []  # the text rules configs out itself
        names = [k.name for k in knobs]
        template = KernelText(rewrite(self.text, knobs))
        found = even_divisions(template, names, {k.name: k.value for k in knobs}, self.own, self.values)

        def put_in(match: re.Match[str]) -> str:
            return match[0] if match[1] in names else str(self.values[match[1]])

        fixed = (re.sub(r'config\["(\w+)"\]', put_in, each) for each in self.constraints)
        return list(dict.fromkeys([*found, *(each for each in fixed if "config[" not in each)]))

    def _try(self, knob: Knob) -> None:
        """Keeps the variant with the most right values, with or without the other literals of the same value; else
        drops ``knob``."""
        best: _Tried | None = None
        for variant in (knob.with_strays(), knob) if knob.strays else (knob,):
            if variant is not knob and self._differs([variant]):
                continue
            tried = self._tried(variant)
            best = tried if best is None or len(tried.right) > len(best.right) else best
            if not tried.refused:
                break
        if best is None or not (best.right or best.together):
            self._drop(knob, best.refused[0][1] if best and best.refused else "no other value is possible")
        elif not best.together and not best.effect:
            self._drop(knob, "other values compile to the same PTX")
        else:
            domain = tuple(sorted([knob.value, *best.right, *best.together]))
            self.together[knob.name] = best.together
            self.kept.append((replace(best.knob, domain=domain), best.refused))
            self.say(f"{knob.name} (line {knob.line}): {', '.join(map(str, domain))}")

    def _tried(self, knob: Knob) -> _Tried:
        try:
            source = self._template([*(k for k, _ in self.kept), knob])
        except CannotPlumb as error:
            return _Tried(knob, refused=((knob.value, str(error)),))
        right, together, refused, effect = list[int](), list[int](), list[tuple[int, str]](), False
        for value in knob.others:
            artifact = self._compiled(source, {knob.name: value}, self.every)
            if isinstance(artifact, CompileFailure) and artifact.ruled_out and self._constraints([knob]):
                together.append(value)
            elif why := self._judged(artifact):
                refused.append((value, why))
            else:
                right.append(value)
                effect = effect or self._changes(artifact)
        return _Tried(knob, tuple(right), tuple(together), tuple(refused), effect)

    def _changes(self, artifact: Artifact | CompileFailure) -> bool:
        assert isinstance(self.old, Artifact) and isinstance(artifact, Artifact)
        new = artifact.builds
        return any(not same_machine_code(build, new[name]) for name, build in self.old.builds.items())

    def _wrong(self, source: str, config: Config) -> str:
        return self._judged(self._compiled(source, config, self.every))

    def _judged(self, artifact: Artifact | CompileFailure) -> str:
        if isinstance(artifact, CompileFailure):
            return f"{artifact.verdict.value.replace('_', ' ')}: {artifact.reason}"
        return self.right(artifact)

    def _drop(self, knob: Knob, why: str) -> None:
        self.say(f"{knob.name} = {knob.value} (line {knob.line}) stays: {why}")
        self.dropped.append(Dropped(knob.name, knob.line, knob.value, why))

    def _whole(self) -> Refactored:
        """Tests all parameters together: the same PTX again, and a few configs with several changed values."""
        while self.kept and (why := self._differs([k for k, _ in self.kept])):
            knob, _ = self.kept.pop()
            self._drop(knob, why)
        self._settle_together()
        knobs = [k for k, _ in self.kept]
        if not knobs:
            return Refactored(self.text.source, (), self.dropped)
        source = self._template(knobs)
        several = [c for c in self._configs(knobs) if self._changed(c) > 1]
        random.Random(0).shuffle(several)  # noqa: S311 - the same every time
        mixed = [not self._wrong(source, config) for config in several[:_MIXED]]
        kept = [Kept(k.name, k.line, k.value, k.domain, len(k.sites) or 1, refused) for k, refused in self.kept]
        return Refactored(source, kept, self.dropped, self._constraints(knobs), (len(mixed), sum(mixed)))

    def _settle_together(self) -> None:
        """Tests values that are only allowed together with other changes, and removes those that are wrong."""
        source = self._template([k for k, _ in self.kept])
        for at, (knob, refused) in enumerate(self.kept):
            for value in self.together[knob.name]:
                configs = [c for c in self._configs([k for k, _ in self.kept]) if c[knob.name] == value]
                nearest = sorted(configs, key=self._changed)[:_NEAREST]
                whys = [self._wrong(source, config) for config in nearest]
                if not any(not why for why in whys):
                    why = whys[0] if whys else "the constraints leave no config with it"
                    refused = (*refused, (value, why))
                    knob = replace(knob, domain=tuple(v for v in knob.domain if v != value))
                    self.kept[at] = (knob, refused)
        for knob, refused in [one for one in self.kept if len(one[0].domain) == 1]:
            self.kept.remove((knob, refused))
            self._drop(knob, refused[0][1])

    def _configs(self, knobs: Sequence[Knob]) -> Sequence[Config]:
        """Configs that the constraints allow on all of the analyst's workloads."""
        constraints = self._constraints(knobs)

        def feasible(config: Config) -> bool:
            return all(holds(each, config, w) for each in constraints for w in self.own)

        return Space.build({k.name: k.domain for k in knobs}, {k.name: k.value for k in knobs}, feasible).configs

    def _changed(self, config: Config) -> int:
        return sum(value != self.values[name] for name, value in config.items())

    def _compiled(self, source: str, config: Config, workloads: Sequence[Workload]) -> Artifact | CompileFailure:
        return self.compiler.compile(source, config, workloads, self.arch, lambda _: None, self.cancel)


def same_machine_code(old: Build, new: Build) -> bool:
    """Whether PTX and launches are equal except for line numbers and kernels' names, which contain parameters."""
    shapes = [[(n.grid, n.block, n.cluster, n.dynamic_smem_bytes) for n in b.plan.launches] for b in (old, new)]
    return shapes[0] == shapes[1] and plain_ptx(old.ptx) == plain_ptx(new.ptx)


def plain_ptx(ptx: str) -> str:
    """PTX without comments, debug information and the names of its kernels."""
    body = ptx.partition("\t.section\t.debug")[0].partition(".section .debug")[0]
    for at, name in enumerate(dict.fromkeys(re.findall(r"\.entry\s+([\w$]+)", body))):
        body = body.replace(name, f"kernel{at}")
    lines = (re.sub(r"//.*", "", line).strip() for line in body.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith((".loc", ".file")))
