"""The template of a pipeline: parameters of its steps, prefixed by step names, and the text of one module."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cutegen_lab.core.candidate import Config, Scalar
from cutegen_lab.core.problem import Problem
from cutegen_lab.templates.emit.bundle import definitions as definitions_of
from cutegen_lab.templates.emit.bundle import kernel_file, names_used
from cutegen_lab.templates.emit.module import call, clean, launch_head, tunable
from cutegen_lab.templates.frontend.formula import formula
from cutegen_lab.templates.pipeline.module import Module, definitions, imports
from cutegen_lab.templates.pipeline.wiring import Step, Tensor, Wiring

_NAMED = 3  # maximum number of kernels whose names are listed
_HOST = kernel_file("pipeline")  # definitions that the generated functions use


@dataclass(frozen=True)
class Pipeline:
    """A :class:`~cutegen_lab.templates.template.Template`. The name of a step may not begin with the name of another
    and an underscore."""

    problem: Problem
    wiring: Wiring

    @property
    def steps(self) -> Sequence[Step]:
        return self.wiring.steps

    @property
    def name(self) -> str:
        names = [step.kernel.name for step in self.steps]
        return ", then ".join(names) if len(names) <= _NAMED else f"pipeline of {len(names)} kernels"

    @property
    def domains(self) -> Mapping[str, Sequence[Scalar]]:
        return {f"{s.name}_{name}": domain for s in self.steps for name, domain in s.kernel.domains.items()}

    @property
    def knobs(self) -> Mapping[tuple[str, int], str]:
        return {
            (f"{step.name}_{name}", direction): f"{step.name}: {why}"
            for step in self.steps
            for (name, direction), why in step.kernel.knobs.items()
        }

    def default_config(self) -> Config:
        return {f"{s.name}_{name}": value for s in self.steps for name, value in s.kernel.default_config().items()}

    def estimate_us(self, config: Config) -> float | None:
        return None

    def feasible(self, config: Config) -> bool:
        return all(step.kernel.feasible(step_config(config, step)) for step in self.steps)

    def why_not(self, config: Config) -> str:
        for step in self.steps:
            if why := step.kernel.why_not(step_config(config, step)):
                return f"{step.name}: {why}"
        return ""

    def settled(self, config: Config) -> Config:
        return {
            f"{step.name}_{name}": value
            for step in self.steps
            for name, value in step.kernel.settled(step_config(config, step)).items()
        }

    def write(self, config: Config) -> str:
        return _Text(self, config).text()


def step_config(config: Config, step: Step) -> Config:
    """The parameters of one step, without the step's prefix."""
    return {name: config[f"{step.name}_{name}"] for name in step.kernel.domains}


class _Text:
    """Writes a pipeline's module: the steps' kernels, and one ``launch``, ``constraints`` and ``workspace`` that call
    theirs. Tensors between steps are workspace, or row-major views of it."""

    def __init__(self, pipeline: Pipeline, config: Config) -> None:
        self.problem, self.steps, self.tensors = pipeline.problem, pipeline.steps, pipeline.wiring.tensors
        self.domains, self.config = pipeline.domains, config
        self.modules = [Module(step.name, step.kernel.write(step_config(config, step))) for step in self.steps]
        self.inputs = [t.name for t in self.problem.workload.inputs]
        self.outputs = [t.name for t in self.problem.workload.outputs]
        self.between = {tensor.name: tensor for tensor in self.tensors}

    def text(self) -> str:
        generated, launch = [*self._constraints(), *self._workspace(), *self._parts()], self._launch()
        used = names_used("\n".join([*generated, *launch]))
        host = [*generated, *(f"\n\n{text}" for name, text in _HOST.definitions.items() if name in used)]
        brought = [line for name, line in _HOST.imports.items() if name in names_used("\n".join(host))]
        lines = [
            *self._header(),
            *brought,
            *imports(self.modules),
            "",
            *tunable(self.domains),
            self._overlap(),
            "",
            *host,
        ]
        taken = {*definitions_of("\n".join(host)), *_HOST.definitions}
        for definition in definitions(self.modules, taken):
            lines += ["", "", *definition.splitlines()]
        return clean([*lines, "", "", *launch])

    def _overlap(self) -> str:
        """Each kernel starts while the one before it ends, except after a matrix product: waiting blocks would delay
        its last blocks. Overlap made attention in three kernels 4% slower on an H200, and other pipelines of 13 to 20
        µs 4 to 5% faster."""
        overlap = not any(any(step.kernel.graph.dots()) for step in self.steps[:-1])
        return f"OVERLAP = {overlap}  # does each kernel start while the one before it ends?"

    def _header(self) -> list[str]:
        said = []
        for step in self.steps:
            names = [t.name for t in step.inputs]
            for spec, output in zip(step.outputs, step.kernel.graph.outputs, strict=True):
                said.append(f"{step.name}: {spec.name} = {formula(step.kernel.graph, output.node, names)}")
        body = "\n".join(textwrap.shorten(line, 116, placeholder=" …") for line in said)
        sentence = f"{len(self.steps)} kernels, one after another; the tensors between them are workspace."
        return [f'"""{self.problem.name}: {sentence}\n\n{body}\n"""', ""]

    # --- the contract's functions ---

    def _constraints(self) -> list[str]:
        asked = [
            f'{m.step}_constraints(step_config(config, "{m.step}_"), {self._workload(m, "constraints")}, device)'
            for m in self.modules
            if m.function("constraints")
        ]
        lines = ["def constraints(config, workload, device):", '    """All steps\' constraints."""', "    return ("]
        lines += [f"        {'and ' if at else ''}{text}" for at, text in enumerate(asked or ["True"])]
        return [*lines, "    )", ""]

    def _workspace(self) -> list[str]:
        says = '    """Tensors between steps, and the workspaces of the steps."""'
        lines = ["", "def workspace(workload, config):", says, "    tensors = ["]
        lines += [f"        {self._described(t)}," for t in self.tensors if not t.base]
        lines += ["    ]"]
        for module in self.modules:
            if module.function("workspace"):
                seen = self._workload(module, "workspace")
                wanted = f'{module.step}_workspace({seen}, step_config(config, "{module.step}_"))'
                lines.append(f"    for name, dtype, shape in {wanted}:")
                lines.append(f'        tensors.append((f"{module.step}_{{name}}", dtype, shape))')
        return [*lines, "    return tensors", ""]

    def _workload(self, module: Module, entry: str) -> str:
        return f"{module.step}_part(workload)" if module.reads_workload(entry) else "workload"

    def _parts(self) -> list[str]:
        """Functions ``…_part`` that restrict a workload to a step's tensors, for steps that read their workload."""
        lines: list[str] = []
        for module in self.modules:
            if module.reads_workload("constraints") or module.reads_workload("workspace"):
                step = self._step(module)
                inputs, outputs = (", ".join(map(self._seen, names)) for names in (step.inputs, step.outputs))
                lines += ["", f"def {step.name}_part(workload):", '    """The step\'s tensors, as a workload."""',
                          f"    inputs = ({inputs},)", f"    outputs = ({outputs},)",
                          "    return dataclasses.replace(workload, inputs=inputs, outputs=outputs)", ""]  # fmt: skip
        return lines

    def _step(self, module: Module) -> Step:
        return next(step for step in self.steps if step.name == module.step)

    def _seen(self, spec: object) -> str:
        name = getattr(spec, "name", "")
        if name in self.inputs:
            return f"workload.inputs[{self.inputs.index(name)}]"
        if name in self.outputs:
            return f"workload.outputs[{self.outputs.index(name)}]"
        return f"intermediate(workload, {self._described(self.between[name])[1:]}"

    def _described(self, tensor: Tensor) -> str:
        """``("h1", "bf16", (…))``."""
        return f'("{tensor.name}", "{tensor.dtype}", {self._shape(tensor, "workload.inputs[{}]")})'

    def _shape(self, tensor: Tensor, form: str) -> str:
        names = [form.format(name if form == "{}" else i) for i, name in enumerate(self.inputs)]
        sizes = [size.text(names) for size in tensor.shape]
        return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"

    # --- the launch ---

    def _launch(self) -> list[str]:
        steps = list(zip(self.steps, self.modules, strict=True))
        works = {step.name: module.workspace(len(step.inputs) + len(step.outputs)) for step, module in steps}
        tensors = [*self.inputs, *self.outputs, *(t.name for t in self.tensors if not t.base)]
        tensors += [f"{step}_{name}" for step, names in works.items() for name in names]
        body = []
        for tensor in self.tensors:
            if tensor.base:
                shape = self._shape(tensor, "{}")
                body += call(f"{tensor.name} = view", [f"{tensor.base}.iterator", shape, f"row_major({shape})"], 0)
        for step, module in steps:
            named = [*(t.name for t in (*step.inputs, *step.outputs)), *(f"{step.name}_{w}" for w in works[step.name])]
            values = [f"{step.name}_{name}" for name in module.parameters[len(named) + 1 :]]
            body += call(f"{step.name}_launch", [*named, "stream", *values], 0)
        return [*launch_head(tensors, self.config), *(f"    {line}" for line in body)]
