"""Runs a KernelBench Model as its harness does: in training mode, unless its text calls eval()."""

from __future__ import annotations

import traceback
from typing import Any, NoReturn

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.problems.source import is_source

# Dropout modules, and the name of their probability.
_DROP = ((_DropoutNd, "p"), ((torch.nn.RNNBase, torch.nn.MultiheadAttention), "dropout"))
_DICE = ("bernoulli", "bernoulli_", "native_dropout", "_fused_dropout")


def without_running_statistics(model: torch.nn.Module) -> torch.nn.Module:
    """``model`` without running statistics in the batch and instance norms that are in training mode: they normalise by
    the statistics of the batch, and would update running statistics in buffers, which are inputs of a kernel."""
    for module in model.modules():
        if isinstance(module, _NormBase) and module.training:
            module.track_running_stats = False
            if isinstance(module, _InstanceNorm):  # an instance norm would write to them even in eval mode
                module.running_mean = module.running_var = module.num_batches_tracked = None
    return model


class RefusesDropout(TorchDispatchMode):
    """Raises ProblemError if dropout draws a mask while ``model`` runs (not with p = 0, nor after eval())."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._model = model

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.overloadpacket.__name__ in _DICE:
            self._refuse()
        return func(*args, **(kwargs or {}))

    def _refuse(self) -> NoReturn:
        lines = [frame.lineno for frame in traceback.extract_stack() if is_source(frame.filename)]
        live = [
            f"{name} = {type(module).__name__}({word}={p:g})"
            for name, module in self._model.named_modules() if module.training
            for kinds, word in _DROP if isinstance(module, kinds) and (p := getattr(module, word)) > 0
        ]  # fmt: skip
        what = f"dropout is live at line {lines[-1]}" if lines else "dropout is live"
        if not live:
            raise ProblemError(f"{what}: the answer is random", "Give it p=0 or training=False, or leave it out.")
        raise ProblemError(
            f"{what} ({', '.join(live)}): KernelBench never calls eval(), so the answer is random",
            "Set it to 0, or end Model.__init__ with self.eval().",
        )
