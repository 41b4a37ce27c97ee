"""The cost of a decoder: parameters, size of the state, and multiply-adds for one more token."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from wonderland.core import WonderlandError
from wonderland.nn.contract.state import over


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Evaluation mode; afterwards every module is back in the mode it had."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def costs(model: Any, t: int) -> dict[str, int]:
    """`Decoder.costs`: counted for one step after t tokens."""
    if not isinstance(t, int) or t < 1:
        raise WonderlandError(f"The cost of a step is counted after at least one token, not after {t}.")
    device = model.embedding.weight.device
    with evaluation_mode(model):
        with torch.no_grad():
            _, state = model.proceed(torch.zeros(1, t, dtype=torch.int64, device=device), None, None)
        # With gradients enabled a step runs as separate operations, which can be counted, and not as one kernel.
        with torch.enable_grad(), FlopCounterMode(display=False, custom_mapping=_FUSED) as counter:
            model.stream(torch.zeros(1, 1, dtype=torch.int64, device=device), state)
    sizes = [0]
    over(state, lambda entry: sizes.append(entry.numel() if entry.is_floating_point() else 0) or entry)
    modules: list[Any] = list(model.modules())
    kernels = sum(module.kernel_multiply_adds(t) for module in modules if hasattr(module, "kernel_multiply_adds"))
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "state": sum(sizes),
        "multiply_adds": counter.get_total_flops() // 2 + kernels,
    }


def _attention_flops(q: Any, k: Any, v: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return 2 * q[0] * q[1] * q[2] * k[2] * (q[3] + v[3])


# torch's counter has no formula for attention on a CPU.
_FUSED = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops}


def cost_table(models: Mapping[str, Any], t: int = 1024) -> str:
    """The costs of several decoders as a table of text, one line for each model."""
    rows: list[tuple[str, ...]] = [("", "parameters", f"state after {t:,} tokens", "multiply-adds a token")]
    for name, model in models.items():
        rows.append((name, *(f"{number:,}" for number in model.costs(t).values())))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
