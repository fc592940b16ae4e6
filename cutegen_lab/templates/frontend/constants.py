"""Replaces ``torch.tensor`` constants of a reference with ``torch.full``, since tensors have no memory during
tracing."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

_MAKES = (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor)


class Constants(TorchFunctionMode):
    """While active, one-element tensors are made by ``torch.full``: their values (rounded to dtype) become part of the
    program."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        data = args[-1:] if func in _MAKES else ()
        if not data or any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(data)):
            return func(*args, **named)
        if func is torch.Tensor.new_tensor:
            named = {"dtype": args[0].dtype, "device": args[0].device, **named}
        with _disable_current_modes():
            value = torch.tensor(data[0], dtype=named.get("dtype"), device="cpu")
        if value.numel() != 1:
            return func(*args, **(kwargs or {}))
        return torch.full(value.shape, value.item(), dtype=value.dtype, device=named.get("device"))
