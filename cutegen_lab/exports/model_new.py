"""A kernel as KernelBench's ``ModelNew``: one module, with the reference's parameters and initial values."""

from __future__ import annotations

import ast
import textwrap

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.syntax import parse
from cutegen_lab.exports.dsl_text import dsl_module
from cutegen_lab.exports.header import under
from cutegen_lab.exports.shapes import torch_name
from cutegen_lab.exports.subject import Subject

_PLAIN_MODEL = "import torch\n\nclass Model(torch.nn.Module):\n    pass\n"
_MODEL_NEW = '''
class ModelNew(_reference("Model")):
    """As the reference's Model, with the same parameters; its forward launches the kernel."""

    _call, _inputs = staticmethod(_kernel()), {names!r}

    def forward(self, *arguments):
        import torch

        def tensors(values):
            for each in values:
                if isinstance(each, torch.Tensor):
                    yield each
                elif isinstance(each, tuple | list):
                    yield from tensors(each)

        state = {{name.replace(".", "_"): each for name, each in (*self.named_parameters(), *self.named_buffers())}}
        given = [*tensors(arguments)]
        results = self._call(*given, *(state[name] for name in self._inputs[len(given) :]))
        return results[0] if len(results) == 1 else tuple(results)
'''


def model_new(subject: Subject) -> dict[str, bytes]:
    """The module. KernelBench's backend ``cute`` imports it from a file and calls it at the precision of the problem's
    inputs."""
    docstring = (
        f"Kernel {subject.candidate_id} of the cutegen-lab run {subject.run_id}, for KernelBench (backend cute). It "
        "compiles at the\nfirst call.\n"
    )
    names = tuple(spec.name for spec in subject.problem.workload.inputs)
    tail = (_reference(subject.problem), _MODEL_NEW.format(names=names), _inputs(subject.problem))
    text = dsl_module(subject, docstring, tail)
    try:
        compile(text, "model_new.py", "exec")
    except SyntaxError as error:
        raise InputError(f"the reference cannot be in a function: {error.msg}", "Import names one by one.") from None
    return {".py": under(subject.claims, text).encode()}


def _reference(problem: Problem) -> str:
    """``_reference(wanted)``, which returns what the reference calls ``wanted``, such as Model. Its text is in a
    function, so that its names do not collide with the kernel's."""
    if problem.kind != "kernelbench":
        return f"def _reference(wanted):\n{textwrap.indent(_PLAIN_MODEL, '    ')}\n    return locals()[wanted]"
    statements = [
        s for s in parse(problem.source).body if not isinstance(s, ast.ImportFrom) or s.module != "__future__"
    ]
    text = ast.unparse(ast.Module(statements, []))
    return f"def _reference(wanted):\n{textwrap.indent(text, '    ')}\n    return locals()[wanted]"


def _inputs(problem: Problem) -> str:
    if problem.kind == "kernelbench":
        return (
            'def get_inputs():\n    return _reference("get_inputs")()\n\n\n'
            'def get_init_inputs():\n    return _reference("get_init_inputs")()\n'
        )
    specs = [(torch_name(spec), list(spec.shape), list(spec.stride), spec.dtype.is_float, spec.below)
             for spec in problem.workload.inputs]  # fmt: skip
    return (
        "def get_inputs():\n    import torch\n\n    found = []\n"
        f"    for dtype, shape, strides, is_float, below in {specs!r}:\n"
        "        values = torch.randn(shape) if is_float else torch.randint(0, max(below, 2), shape)\n"
        "        found.append(torch.empty_strided(shape, strides, dtype=getattr(torch, dtype)).copy_(values))\n"
        "    return found\n\n\ndef get_init_inputs():\n    return []\n"
    )
