"""Makes literals of a kernel's text parameters of launch(), passed down to the functions that use them.

Only the affected places change: comments, names and layout stay as they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from cutegen_lab.tuning.refactor.knobs import Knob
from cutegen_lab.tuning.refactor.text import HOST, KernelText, Span, assigned, bound, every_argument


class CannotPlumb(Exception):
    """Why a knob cannot become a parameter of this text."""

    def __init__(self, knob: Knob, why: str) -> None:
        super().__init__(why)
        self.knob = knob


def rewrite(text: KernelText, knobs: Sequence[Knob], constraints: Sequence[str] = ()) -> str:
    """The text with every knob as a parameter, with TUNABLE and with constraints (expressions). Raises CannotPlumb."""
    return _Rewriting(text, knobs).run(constraints)


class _Rewriting:
    def __init__(self, text: KernelText, knobs: Sequence[Knob]) -> None:
        self.text, self.knobs = text, knobs
        self.edits: dict[Span, str] = {}
        self.by_constant = {k.constant: k for k in knobs if k.constant}
        self.needs: dict[str, set[str]] = {k.name: set() for k in knobs}

    def run(self, constraints: Sequence[str]) -> str:
        for knob in self.knobs:
            for site in knob.sites:
                self.edits[site] = self._reference(knob, site)
        self._read_constants()
        for knob in self.knobs:
            self._hand_down(knob)
        self._signatures()
        self._tidy()
        self._declare(constraints)
        return self._applied()

    def _reference(self, knob: Knob, at: Span) -> str:
        """Text that refers to ``knob`` at a place; records that the function there needs it."""
        owner = self.text.owner(at)
        if owner is None:
            raise CannotPlumb(knob, f"line {self.text.line(at)} uses it outside of a function's body")
        function = self.text.functions[owner]
        if owner in HOST and len(function.args.args) > HOST[owner]:
            return f'{function.args.args[HOST[owner]].arg}["{knob.name}"]'
        self.needs[knob.name].add(owner)
        return knob.name

    def _read_constants(self) -> None:
        for name in self.text.constants:
            if not (on := self._depends(name, ())):
                continue
            for read in self.text.reads(name):
                span = self.text.span(read)
                if id(read) in self.text.formatted:
                    raise CannotPlumb(on[0], f"line {read.lineno} uses it in an f-string")
                if self.text.owner(span) is None and any(span in self.text.span(v) for v in self._computed()):
                    continue  # the read is in another constant's value, which is inlined
                for knob in on:
                    self._reference(knob, span)
                self.edits[span] = self._expression(name, span)

    def _computed(self) -> Iterable[ast.expr]:
        return (value for name, value in self.text.constants.items() if self._depends(name, ()))

    def _depends(self, name: str, seen: tuple[str, ...]) -> list[Knob]:
        """The knobs from which a constant is computed."""
        if name in self.by_constant:
            return [self.by_constant[name]]
        if name not in self.text.constants or name in seen:
            return []
        inner = {n.id for n in ast.walk(self.text.constants[name]) if isinstance(n, ast.Name)}
        found = [knob for one in sorted(inner) for knob in self._depends(one, (*seen, name))]
        return list(dict.fromkeys(found))

    def _expression(self, name: str, at: Span) -> str:
        """Text that replaces a constant that is a knob or is computed from some."""
        if name in self.by_constant:
            return self._reference(self.by_constant[name], at)
        value = self.text.constants[name]
        whole, parts = self.text.span(value), []
        position = whole.start
        inner = [n for n in ast.walk(value) if isinstance(n, ast.Name) and self._depends(n.id, ())]
        for node in sorted(inner, key=lambda n: self.text.span(n)):
            span = self.text.span(node)
            parts += [self.text.source[position : span.start], self._expression(node.id, at)]
            position = span.end
        return "(" + "".join([*parts, self.text.source[position : whole.end]]) + ")"

    def _hand_down(self, knob: Knob) -> None:
        """Adds the parameter to every caller of a function that needs ``knob``, up to launch()."""
        needs, waiting = self.needs[knob.name], list(self.needs[knob.name])
        while waiting:
            name = waiting.pop()
            if name == "launch":
                continue
            calls = self.text.calls(name)
            mentions = [n for n in ast.walk(self.text.tree) if isinstance(n, ast.Name) and n.id == name]
            if len(mentions) > len(calls):
                raise CannotPlumb(knob, f"{name}() is passed on as a value")
            for call in calls:
                owner = self.text.owner(self.text.span(call))
                if owner is None:
                    raise CannotPlumb(knob, f"{name}() is called outside of the module's functions")
                if owner not in needs:
                    needs.add(owner)
                    waiting.append(owner)
        if needs and "launch" not in needs and not knob.given:
            raise CannotPlumb(knob, f"launch() does not reach {', '.join(sorted(needs))}")
        needs.add("launch")

    def _signatures(self) -> None:
        inserted: dict[int, str] = {}
        for knob in self.knobs:
            for name in sorted(self.needs[knob.name]):
                function = self.text.functions[name]
                own = knob.name in {a.arg for a in every_argument(function.args)}
                if own:
                    self._passed_already(knob, name)
                    continue
                if knob.name in bound(function) and not self._is_the_knob(knob, function):
                    raise CannotPlumb(knob, f"{knob.name} means something else in {name}()")
                at, parameter = self._parameter(knob, function)
                inserted[at] = inserted.get(at, "") + parameter
                for call in self.text.calls(name):
                    at, argument = self._argument(knob, call)
                    inserted[at] = inserted.get(at, "") + argument
        self.edits |= {Span(at, at): new for at, new in inserted.items()}

    def _passed_already(self, knob: Knob, name: str) -> None:
        """Checks that the function's argument of that name is the knob in every call. Raises CannotPlumb if not."""
        if name == "launch":
            if knob.given:
                return
            raise CannotPlumb(knob, f"launch() has another {knob.name}")
        names = [a.arg for a in self.text.functions[name].args.args]
        for call in self.text.calls(name):
            at = names.index(knob.name) if knob.name in names else len(call.args)
            given = call.args[at] if at < len(call.args) else next(
                (k.value for k in call.keywords if k.arg == knob.name), None)  # fmt: skip
            if not (isinstance(given, ast.Name) and given.id == knob.name):
                raise CannotPlumb(knob, f"{name}() has an argument {knob.name} that is something else")

    def _is_the_knob(self, knob: Knob, function: ast.FunctionDef) -> bool:
        """Whether the function's own name is the assignment that the knob replaces."""
        return any(
            name == knob.name and self.text.span(value) in knob.sites
            for statement in function.body for name, value in assigned(statement)
        )  # fmt: skip

    def _parameter(self, knob: Knob, function: ast.FunctionDef) -> tuple[int, str]:
        arguments = function.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or not arguments.args:
            raise CannotPlumb(knob, f"the arguments of {function.name}() leave no place for another")
        last = arguments.defaults[-1] if arguments.defaults else arguments.args[-1]
        default = f" = {knob.value}" if arguments.defaults or function.name == "launch" else ""
        return self.text.span(last).end, f", {knob.name}: {self._constexpr()}{default}"

    def _argument(self, knob: Knob, call: ast.Call) -> tuple[int, str]:
        given = [*call.args, *(k.value for k in call.keywords)]
        if not given:
            return self.text.span(call).end - 1, f"{knob.name}={knob.name}"
        return max(self.text.span(g).end for g in given), f", {knob.name}={knob.name}"

    def _constexpr(self) -> str:
        names = {
            a.asname or a.name
            for n in self.text.tree.body
            if isinstance(n, ast.Import | ast.ImportFrom)
            for a in n.names
        }
        if "cutlass" not in names and "Constexpr" in names:
            return "Constexpr"
        return "cutlass.Constexpr"

    def _tidy(self) -> None:
        """Removes assignments of a name to itself, and constants that are no longer read."""
        for function in self.text.functions.values():
            for statement in function.body:
                pairs = list(assigned(statement))
                same = [self.edits.get(self.text.span(value)) == name for name, value in pairs]
                if pairs and all(same) and len(function.body) > 1 and (lines := self.text.lines_of(statement)):
                    for _, value in pairs:
                        del self.edits[self.text.span(value)]
                    self.edits[lines] = ""
        gone = {n for n in self.text.constants if self._depends(n, ()) and not self._read_elsewhere(n)}
        for statement in self.text.tree.body:
            pairs = list(assigned(statement))
            if pairs and all(name in gone for name, _ in pairs) and (lines := self.text.lines_of(statement)):
                self.edits[lines] = ""

    def _read_elsewhere(self, name: str) -> bool:
        computed = [self.text.span(v) for n, v in self.text.constants.items() if self._depends(n, ())]
        reads = (self.text.span(read) for read in self.text.reads(name))
        return any(span not in self.edits and not any(span in value for value in computed) for span in reads)

    def _declare(self, constraints: Sequence[str]) -> None:
        domains = ", ".join(f'"{k.name}": {k.domain}' for k in self.knobs)
        lines = [f"TUNABLE = {{{domains}}}", ""]
        if constraints:
            joined = "\n        and ".join(constraints)
            whole = f"(\n        {joined}\n    )" if len(constraints) > 1 else joined
            lines += ["", "def constraints(config, workload, device):", f"    return {whole}", ""]
        first = next(n for n in self.text.tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef))
        line = min([first.lineno, *(d.lineno for d in first.decorator_list)])
        at = sum(len(one) for one in self.text.source.splitlines(keepends=True)[: line - 1])
        bound_names = re.search(r"^import cutlass(\s*,|\s*$)", self.text.source, re.M)
        needed = self._constexpr() == "cutlass.Constexpr" and not bound_names and any(not k.given for k in self.knobs)
        head = ["import cutlass", ""] if needed else []
        self.edits[Span(at, at)] = "\n".join([*head, *lines, "", ""]) + self.edits.get(Span(at, at), "")

    def _applied(self) -> str:
        parts, position = [], 0
        for span in sorted(self.edits):
            parts += [self.text.source[position : span.start], self.edits[span]]
            position = span.end
        return "".join([*parts, self.text.source[position:]])
