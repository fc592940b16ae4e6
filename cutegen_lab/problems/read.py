"""Reads a problem: traces the reference on fake tensors, derives workloads, and runs it on a small one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.hints import did_you_mean
from cutegen_lab.core.plain_text import misfit, plain
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.problems import parts, rules
from cutegen_lab.problems.arguments import declared
from cutegen_lab.problems.dtypes import TORCH, from_torch
from cutegen_lab.problems.executed import executed
from cutegen_lab.problems.fakes import fake_tensors
from cutegen_lab.problems.flops import Work, counted
from cutegen_lab.problems.indices import accepted, ranged
from cutegen_lab.problems.reference import Bound
from cutegen_lab.problems.sensitivity import insensitive
from cutegen_lab.problems.source import LoadedSource, default_precision, load, tf32_allowed
from cutegen_lab.problems.summed import sums_of
from cutegen_lab.problems.tensors import alike, placed
from cutegen_lab.problems.tracing import tracing
from cutegen_lab.problems.training import RefusesDropout
from cutegen_lab.problems.workloads import derive

_DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)
_ASKED_BYTES = 1 << 22  # maximum bytes of a workload that is run once for each value that an index might take
_TRIAL_BYTES = 1 << 28  # maximum bytes of the workload on which the reference is validated by real runs


def read_file(path: str | Path, *, inputs_text: str = "", name: str | None = None) -> Problem:
    """Reads a problem from a file with ``reference`` (and ``inputs()``), or an unmodified KernelBench file.

    Raises ProblemError: one line and the next action.
    """
    path = Path(path)
    try:
        source = path.read_text()
    except OSError as error:
        raise ProblemError(f"cannot read {path}: {error.strerror}", "Check the path.") from None
    except UnicodeDecodeError:
        raise ProblemError(f"{path} is not a text file", "Give a Python file.") from None
    return read_text(source, name=name or plain(path.stem), inputs_text=inputs_text)


def read_text(source: str, *, name: str = "problem", inputs_text: str = "", deterministic: bool = True) -> Problem:
    """Reads a problem from a cell's text.

    Inputs come from ``inputs_text`` (``"x: bf16[4096,8192], w: bf16[8192]"``; several workloads separated by ``;``),
    from such text in a comment at the end of the line ``def reference``, or from ``inputs()`` or ``get_inputs()``,
    which returns a tuple or dict of tensors, or a list with one of these for each workload. Two launches of a kernel
    must agree bit for bit unless ``deterministic`` is false here, or the text has a line ``deterministic = False``.
    fp32 matrix products may use TF32 only if the text sets that at its top, as with
    ``torch.set_float32_matmul_precision("high")``; fp32 convolutions may, as in PyTorch, unless it sets
    ``torch.backends.cudnn.allow_tf32 = False``. Raises ProblemError: one line and the next action.
    """
    for what, text in (("source", source), ("name", name), ("text of the inputs", inputs_text)):
        if why := misfit(text):
            raise ProblemError(f"the {what} {why}", "Write that character as an escape, or leave it out.")
    with tracing(), default_precision():
        loaded = load(source)
        problem = _read(loaded, source, name, inputs_text, deterministic)
        if tf32_allowed():
            raise ProblemError(
                "the reference allows TF32 while it runs", "Allow it at the top of the text: it applies to all of it."
            )
    return problem


def _read(loaded: LoadedSource, source: str, name: str, inputs_text: str, deterministic: bool) -> Problem:
    strict = deterministic and loaded.deterministic
    calls = declared(loaded, source, inputs_text)
    bound = Bound(loaded, calls[0])
    state = tuple(bound.parameter_specs())
    traced = [_traced(Bound(loaded, call), call.tensors + state) for call in calls]
    workloads = [
        Workload("main" if index == 0 else f"w{index + 1}", call.tensors + state, outputs)
        for index, (call, (outputs, _)) in enumerate(zip(calls, traced, strict=True))
    ]
    if empty_one := next((t for w in workloads for t in w.inputs if not t.numel), None):
        raise ProblemError(f"{empty_one} has no elements", "Sizes must be at least 1.")
    workloads = list(rules.checked(workloads))
    main = workloads[0]
    work = _work(bound, main)
    sums = partial(_sums, bound) if work.flops > 0 else None
    _, cuts = traced[0]
    checks = derive(main, len(main.inputs) - len(state), lambda inputs: _traced_or_none(bound, inputs, cuts), sums)
    checks = tuple(w for w in map(rules.resolved, checks) if not rules.impossible(w))
    checks = _validate(bound, checks, main, deterministic)
    own = tuple(_ranged(bound, w) for w in workloads)
    own = tuple(_with_least(bound, w) for w in own) if work.reads_parts else own
    small = tuple(w for w in (_ranged(bound, w, follows=True) for w in checks) if not rules.impossible(w))
    return Problem(
        name=name, source=source, kind=loaded.kind, workloads=own, check_workloads=small,
        deterministic=strict, flops=work.flops, inputs_text=inputs_text, tf32=loaded.tf32,
        tf32_convolutions=work.fp32_convolutions and loaded.tf32_convolutions, images=work.images,
        insensitive=insensitive(own[0], len(main.inputs) - len(state), small, bound.call_float64),
    )  # fmt: skip


def _outputs(bound: Bound, inputs: tuple[TensorSpec, ...]) -> tuple[tuple[TensorSpec, ...], Sequence[parts.Cut]]:
    """The outputs, and the cuts with which the reference divides tensors."""
    seen = parts.Cuts()
    with seen, fake_tensors(inputs) as tensors:
        versions = [t._version for t in tensors]
        with RefusesDropout(bound.module):
            outputs = bound.call(tensors)
        for spec, tensor, version in zip(inputs, tensors, versions, strict=True):
            if tensor._version != version:
                raise ProblemError(f"the reference modifies its input {spec.name!r} in place", "Work on a clone of it.")
    names = ["out"] if len(outputs) == 1 else [f"out{i}" for i in range(len(outputs))]
    specs = tuple(
        TensorSpec(n, from_torch(t.dtype, f"output {n!r}"), tuple(t.shape)) for n, t in zip(names, outputs, strict=True)
    )
    return specs, seen.found


def _traced(bound: Bound, inputs: tuple[TensorSpec, ...]) -> tuple[tuple[TensorSpec, ...], Sequence[parts.Cut]]:
    try:
        return _outputs(bound, inputs)
    except ProblemError:
        raise
    except _DATA_DEPENDENT as error:
        message = f"the reference's shapes or control flow depend on data: {bound.explain(error)}"
        raise ProblemError(message, "A kernel's shapes must follow from its inputs' shapes.") from error
    except (Exception, SystemExit) as error:
        raise ProblemError(f"the reference raises {bound.explain(error)}", _mend(error)) from error


def _traced_or_none(
    bound: Bound, inputs: tuple[TensorSpec, ...], cuts: Sequence[parts.Cut]
) -> tuple[TensorSpec, ...] | None:
    """The outputs; None if the reference refuses ``inputs`` or does not divide them into the parts ``cuts``."""
    try:
        outputs, seen = _outputs(bound, inputs)
    except Exception:  # a reference may refuse shapes with any exception
        return None
    return outputs if parts.alike(cuts, seen) else None


def _ranged(bound: Bound, workload: Workload, follows: bool = False) -> Workload:
    """``workload`` with ranges of indices. ``follows``: a rule's numeric bound is reduced to the size that the
    reference indexes in this workload (``below 4099`` becomes 257, if 4099 columns have become 257)."""
    if all(spec.dtype.is_float or spec.dtype is DType.BOOL for spec in workload.inputs):
        return workload
    with fake_tensors(workload.inputs) as tensors:
        found = ranged(workload.inputs, bound.call, tensors)
    inputs = [_with_range(spec, seen, follows) for spec, seen in zip(workload.inputs, found, strict=True)]
    if workload.nbytes <= _ASKED_BYTES:
        with torch.no_grad():
            inputs = accepted(inputs, bound.call, _sample)
    return replace(workload, inputs=tuple(inputs))


def _with_range(spec: TensorSpec, seen: TensorSpec, follows: bool) -> TensorSpec:
    """``spec`` with the range of ``seen``, or with that of its rule if it has one. ``follows``: as in
    :func:`_ranged`."""
    if not spec.rule:
        return seen
    fixed = spec.rule == "sorted" or spec.bound is not None or not follows
    return spec if fixed else replace(spec, below=min(spec.below, seen.below))


def _with_least(bound: Bound, workload: Workload) -> Workload:
    """``workload`` with the bytes that must be read of inputs that are not read whole. Depends on ranges of
    indices."""
    with fake_tensors(workload.inputs) as tensors:
        least = executed(lambda: bound.call(tensors), tensors, workload.inputs).input_bytes
    inputs = zip(workload.inputs, least, strict=True)
    return replace(
        workload, inputs=tuple(replace(spec, least_bytes=n) if n < spec.nbytes else spec for spec, n in inputs)
    )


def _work(bound: Bound, main: Workload) -> Work:
    with fake_tensors(main.inputs) as tensors:
        return counted(lambda: bound.call(tensors), tensors, main.inputs)


def _sums(bound: Bound, inputs: tuple[TensorSpec, ...]) -> tuple[int, ...]:
    with fake_tensors(inputs) as tensors:
        return sums_of(lambda: bound.call(tensors))


def _validate(bound: Bound, checks: Sequence[Workload], main: Workload, deterministic: bool) -> tuple[Workload, ...]:
    """Runs the reference twice on the smallest workload: it must not modify its inputs, be random, or raise. If it
    raises on one of ``checks``, which passed on fake tensors, each check is run. Returns the checks on which it does
    not raise."""
    workload = min((*checks, main), key=lambda w: w.nbytes)
    if workload.nbytes > _TRIAL_BYTES:
        return tuple(checks)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        tensors = [_sample(spec) for spec in workload.inputs]
        before = [t.clone() for t in tensors]
        try:
            first = bound.call(tensors)
            torch.manual_seed(2)
            second = bound.call(tensors)
        except ProblemError:
            raise
        except Exception as error:
            if workload is not main:
                sound = [w for w in checks if w is not workload and _runs(bound, w)]
                return _validate(bound, sound, main, deterministic)
            raise ProblemError(f"the reference raises {bound.explain(error)}", _mend(error)) from error
    for spec, tensor, copy in zip(workload.inputs, tensors, before, strict=True):
        if not torch.equal(tensor, copy):
            raise ProblemError(f"the reference modifies its input {spec.name!r} in place", "Work on a clone of it.")
    if deterministic and not all(alike(a, b) for a, b in zip(first, second, strict=True)):
        message = "the reference gives different answers for the same inputs"
        raise ProblemError(message, "Use no random numbers in it.")
    return tuple(checks)


def _mend(error: BaseException) -> str:
    if "ZeroDivisionError" in str(error):
        return "Integer inputs are drawn as 0 too: write the divisor so that it is never 0, as y.clamp(min=1) does."
    meant = ""
    if isinstance(error, AttributeError) and error.name and isinstance(error.obj, ModuleType | torch.Tensor):
        meant = did_you_mean(error.name, dir(error.obj))
    return f"{meant} Fix it or its inputs.".strip()


def _runs(bound: Bound, workload: Workload) -> bool:
    try:
        bound.call([_sample(spec) for spec in workload.inputs])
    except Exception:  # any exception means that the reference does not accept them
        return False
    return True


def _sample(spec: TensorSpec) -> torch.Tensor:
    if spec.rule:
        return placed(rules.sample(spec).to(TORCH[spec.dtype]), spec)
    values = torch.randn(spec.shape) if spec.dtype.is_float else torch.zeros(spec.shape)
    return placed(values.to(TORCH[spec.dtype]), spec)
