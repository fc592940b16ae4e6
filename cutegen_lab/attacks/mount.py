"""Joins an attack's text with an honest module: the honest ``launch`` is renamed, and a new one calls both."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from cutegen_lab.attacks.attack import NEEDS, SCRATCH, Attack, NotApplicable
from cutegen_lab.attacks.catalogue import PRELUDE
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.syntax import expression, parse

_DECLARED = {
    "like outputs": "[(f'attack_scratch_{i}', t.dtype, t.shape) for i, t in enumerate(workload.outputs)]",
    "like inputs": "[(f'attack_scratch_{i}', t.dtype, t.shape) for i, t in enumerate(workload.inputs)]",
    "memory": "[('attack_scratch_0', 'i32', (64,))]",
    "128 GiB": "[('attack_scratch_0', 'f32', (1 << 35,))]",
}
_TYPE = expression("cute.Tensor")


def mount(attack: Attack, problem: Problem, honest: str) -> str:
    """Text of the hostile module: the honest text, its lines in place, then the attack's.

    Raises :class:`NotApplicable` if the problem lacks what the attack needs, or if ``honest`` violates the candidate
    contract.
    """
    for need in attack.needs:
        if not NEEDS[need](problem):
            raise NotApplicable(f"it needs {need}")
    tree = _parse(honest)
    if not attack.is_kernel:
        return f"{honest.rstrip()}\n\n\n{_code(attack.text)}"
    module = _Honest(honest, tree)
    spare = SCRATCH[attack.scratch](problem.workload)
    text = f"{_code(PRELUDE.read_text(encoding='utf-8'))}\n\n{_code(attack.text)}"
    for name in _top_level(parse(text)) & _top_level(tree):
        text = re.sub(rf"(?<![\w.]){name}\b", f"attack_{name}", text)
    parts = [
        module.renamed().rstrip(), f"MAIN_OUTPUT_ELEMENTS = {problem.workload.outputs[0].numel}", text.strip(),
        *([module.workspace(attack.scratch)] if spare else []), module.launch(problem, spare),
    ]  # fmt: skip
    return "\n\n\n".join(parts) + "\n"


@dataclass
class _Honest:
    """An honest module and its syntax tree."""

    source: str
    tree: ast.Module

    def renamed(self) -> str:
        lines = self.source.split("\n")
        for name in ("launch", "workspace"):
            function = self._function(name)
            if function is not None:
                at = function.lineno - 1
                lines[at] = re.sub(rf"\bdef\s+{name}\b", f"def honest_{name}", lines[at], count=1)
        return "\n".join(lines)

    def workspace(self, scratch: str) -> str:
        own = "list(honest_workspace(workload, config))" if self._function("workspace") else "[]"
        return f"def workspace(workload, config):\n    return {own} + {_DECLARED[scratch]}"

    def launch(self, problem: Problem, spare: int) -> str:
        """The new ``launch``: the honest one's parameters, with the attack's workspace before ``stream``."""
        function = self._function("launch")
        names = [a.arg for a in function.args.args] if function else []
        if function is None or "stream" not in names:
            raise NotApplicable("the kernel has no launch(..., stream, ...) at its top level")
        inputs, outputs = len(problem.workload.inputs), len(problem.workload.outputs)
        at = names.index("stream")
        if at < inputs + outputs:
            raise NotApplicable(f"the kernel's launch() takes {at} tensors; the problem has {inputs + outputs}")
        scratch = [f"attack_scratch_{i}" for i in range(spare)]
        arguments = function.args
        arguments.args[at:at] = [ast.arg(name, _TYPE) for name in scratch]
        own_workspace, tunables = names[inputs + outputs : at], names[at + 1 :]
        tunables += [a.arg for a in arguments.kwonlyargs]
        given, asked = names[:inputs], names[inputs : inputs + outputs]
        passed = ["*attack_inputs", "*attack_outputs", *own_workspace, "stream", *(f"{t}={t}" for t in tunables)]
        return (
            f"@cute.jit\ndef launch({ast.unparse(arguments)}):\n"
            f"    attack(\n"
            f"        lambda attack_inputs, attack_outputs: honest_launch({', '.join(passed)}),\n"
            f"        {_tuple(given)}, {_tuple(asked)}, {_tuple(scratch)}, stream,\n"
            f"    )"
        )

    def _function(self, name: str) -> ast.FunctionDef | None:
        found = [n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
        return found[-1] if found else None


def _parse(honest: str) -> ast.Module:
    try:
        return parse(honest)
    except (SyntaxError, ValueError) as error:
        raise NotApplicable(f"the kernel is not valid Python: {error}") from None


def _code(text: str) -> str:
    """A text without its docstring."""
    first = parse(text).body[0]
    return "\n".join(text.split("\n")[first.end_lineno :]).strip() + "\n"


def _top_level(tree: ast.Module) -> set[str]:
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef)} - {"launch", "workspace"}


def _tuple(names: list[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names).rstrip()})"
