"""Runs a problem's reference: at its own precision, in float64, and as a module for ``torch.export``."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.core.problem import Problem, TensorSpec, Workload
from cutegen_lab.problems.arguments import Arguments, declared
from cutegen_lab.problems.default_dtype import float64_by_default, unchanged
from cutegen_lab.problems.dtypes import from_torch
from cutegen_lab.problems.source import LoadedSource, describe, load
from cutegen_lab.problems.tensors import empty
from cutegen_lab.problems.tracing import tracing
from cutegen_lab.problems.training import without_running_statistics

INIT_SEED = 0
_NARROW = (torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
_NARROWING = {torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16}


class Reference:
    """The callable of a problem. ``tensors`` are a workload's inputs in order: arguments, parameters, buffers.

    Raises ProblemError if the source cannot be loaded.
    """

    def __init__(self, problem: Problem) -> None:
        with tracing():  # a module may set PyTorch's precision, and its weights are drawn from the global generator
            loaded = load(problem.source)
            arguments = declared(loaded, problem.source, problem.inputs_text)[0]
            self._bound = Bound(loaded, arguments)
        self.tf32, self.tf32_convolutions = problem.tf32, problem.tf32_convolutions
        self.cudnn_tf32 = loaded.tf32_convolutions  # what the reference's text allows, with or without convolutions

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Outputs at the precision of the problem's types; TF32 in products follows PyTorch's settings."""
        with torch.no_grad():
            return self._bound.call(tensors)

    def run_float64(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Outputs with every floating-point value, parameter and internal cast in float64. Attention is computed by its
        formula, since the fused kernel returns zeros for a query that holds a NaN."""
        return self._bound.call_float64(tensors)

    def module_and_args(self, workload: Workload) -> tuple[torch.nn.Module, tuple[Any, ...]]:
        """An ``nn.Module`` and example arguments for ``torch.export``; tensors on ``meta``, without memory."""
        count = len(self._bound.arguments.tensors)
        tensors = [_unallocated(spec) for spec in workload.inputs]
        module = self._bound.module
        if isinstance(module, _FunctionModule):
            module = module.traced()
        state = [t for _, t in (*module.named_parameters(), *module.named_buffers())]
        unallocated = {id(t): _like(t, other) for t, other in zip(state, tensors[count:], strict=True)}
        return copy.deepcopy(module, unallocated), tuple(self._bound.arguments.filled(tensors[:count]))

    @property
    def parameters(self) -> Mapping[str, torch.Tensor]:
        """Initial values of a Model's parameters and buffers by input name; empty for a function."""
        return self._bound.parameters


class Bound:
    """A loaded source with one workload's arguments: a function from tensors to a tuple of tensors."""

    def __init__(self, loaded: LoadedSource, arguments: Arguments) -> None:
        self.loaded, self.arguments = loaded, arguments
        self.module = _kernelbench_model(loaded) if loaded.kind == "kernelbench" else _FunctionModule(loaded.reference)
        state = [*self.module.named_parameters(), *self.module.named_buffers()]
        self._state_names = [name for name, _ in state]
        self._recurrent = any(isinstance(module, torch.nn.RNNBase) for module in self.module.modules())
        self.parameters = {name.replace(".", "_"): value.detach() for name, value in state}

    def parameter_specs(self) -> list[TensorSpec]:
        return [
            TensorSpec(name, from_torch(value.dtype, f"parameter {name!r}"), tuple(value.shape))
            for name, value in self.parameters.items()
        ]

    def call(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Raises ProblemError for outputs that are not tensors, and any exception of the reference."""
        with contextlib.nullcontext() if torch.compiler.is_compiling() else unchanged():
            return self._called(tensors)

    def _called(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        count = len(self.arguments.tensors)
        arguments = self.arguments.filled(tensors[:count])
        if self._state_names:
            state = dict(zip(self._state_names, tensors[count:], strict=True))
            plain = self._recurrent and not torch.compiler.is_compiling()
            with _without_onednn() if plain else contextlib.nullcontext():
                result = torch.func.functional_call(self.module, state, tuple(arguments))
        else:
            result = self.module(*arguments)
        return as_outputs(result)

    def call_float64(self, tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """As :meth:`Reference.run_float64`."""
        wide = [t.double() if t.is_floating_point() else t for t in tensors]
        with torch.no_grad(), _Float64(), sdpa_kernel(SDPBackend.MATH):
            return self._called(wide)

    def explain(self, error: BaseException) -> str:
        return describe(error, self.loaded.filename)


@contextlib.contextmanager
def _without_onednn() -> Iterator[None]:
    """Disables oneDNN: its LSTM accepts weights that do not fit the input and reads past their end, whereas PyTorch's
    own LSTM raises."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


class _FunctionModule(torch.nn.Module):
    """A reference function as a module for ``torch.export``."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def traced(self) -> _FunctionModule:
        """The call, in a function named "forward": ``torch.export`` drops source lines of frames with other names."""
        function = self._function
        if not isinstance(function, FunctionType):
            return self
        renamed = FunctionType(
            function.__code__.replace(co_name="forward"), function.__globals__, "forward", function.__defaults__,
            function.__closure__,
        )  # fmt: skip
        renamed.__kwdefaults__ = function.__kwdefaults__
        return _FunctionModule(renamed)


def _kernelbench_model(loaded: LoadedSource) -> torch.nn.Module:
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(INIT_SEED)
            initial = loaded.namespace["get_init_inputs"]()
            model = (
                loaded.namespace["Model"](**initial)
                if isinstance(initial, dict)
                else loaded.namespace["Model"](*initial)
            )
    except (Exception, SystemExit) as error:
        raise ProblemError(f"Model(...) raises {describe(error, loaded.filename)}", "Fix it and run again.") from error
    if not isinstance(model, torch.nn.Module):
        raise ProblemError(f"Model is a {type(model).__name__}, not a torch.nn.Module", "Derive it from nn.Module.")
    return without_running_statistics(model)


def as_outputs(result: Any) -> tuple[torch.Tensor, ...]:
    """A reference's return value as a tuple of tensors. Raises ProblemError naming any other value."""
    values: Iterable[Any] = result if isinstance(result, tuple | list) else (result,)
    outputs = tuple(values)
    for index, value in enumerate(outputs):
        if not isinstance(value, torch.Tensor):
            what = f"output {index}" if len(outputs) > 1 else "the reference's result"
            raise ProblemError(
                f"{what} is a {type(value).__name__}, not a tensor", "Return a tensor or a tuple of tensors."
            )
    if not outputs:
        raise ProblemError("the reference returns nothing", "Return a tensor or a tuple of tensors.")
    return outputs


def _unallocated(spec: TensorSpec) -> torch.Tensor:
    """A tensor of the right shape and dtype without memory, for tracing."""
    return empty(spec, "meta")


def _like(tensor: torch.Tensor, unallocated: torch.Tensor) -> torch.Tensor:
    if not isinstance(tensor, torch.nn.Parameter):
        return unallocated
    return torch.nn.Parameter(unallocated, tensor.requires_grad)


class _Float64(TorchFunctionMode):
    """While the reference runs, replaces narrower floating-point types by float64, the default dtype included.
    PyTorch's default dtype is global to all threads (the analyst's cells too), so it is changed only during single
    operators, one thread at a time, while no other reference runs."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _NARROWING:
            return args[0].double()
        if func is torch._scaled_mm:
            return _scaled_mm(*args, **(kwargs or {}))
        if func is torch.Tensor.view and not args[0].is_floating_point() and _widened(args[-1]) is torch.float64:
            # view the bits as the requested narrow type first, then widen to float64
            return args[0].view(args[-1]).double()
        args, kwargs = tuple(_widened(a) for a in args), {k: _widened(v) for k, v in (kwargs or {}).items()}
        result = func(*args, **kwargs)
        return _by_default(func, args, kwargs) if _narrow_among(result) and not _float_among(args, kwargs) else result


def _by_default(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls ``func`` with float64 as the default dtype, which ``torch.zeros(3)``, ``torch.tensor(0.1)`` and a quotient
    of integers use."""
    with float64_by_default():
        return func(*args, **kwargs)


def _tensors(*values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from _tensors(*value)


def _narrow_among(result: Any) -> bool:
    return any(tensor.dtype in _NARROW for tensor in _tensors(result))


def _float_among(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return any(tensor.is_floating_point() for tensor in _tensors(*args, *kwargs.values()))


def _scaled_mm(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None, **_: Any,
) -> torch.Tensor:  # fmt: skip
    """torch's ``_scaled_mm``, which accepts only 8-bit numbers, for any floating-point type."""
    product = (a @ b) * scale_a * scale_b
    product = product if bias is None else product + bias
    return product if scale_result is None else product * scale_result


def _widened(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value
