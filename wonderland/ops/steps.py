"""Single steps of generation: one token through a whole mixer in one call, where dispatch would cost more than arithmetic."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.ops import native

MOST_ROWS = 8  # above this, matrix products over the whole batch win

# Plain dispatcher entries: a custom_op costs 15 microseconds a call, as much as the step itself.
_LIBRARY = torch.library.Library("wonderland", "FRAGMENT")


def fits(x: Tensor, weight: Tensor) -> bool:
    """Whether a step kernel may take over: one token, few rows, no gradients, one type of number on the CPU."""
    rows, t, _ = x.shape
    return (
        t == 1
        and rows <= MOST_ROWS
        and not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and x.dtype in (torch.float32, torch.float64)
        and weight.dtype == x.dtype
        and x.is_cpu
        and native.available()
    )


def weights(module: nn.Module, linear: tuple[str, ...], own: tuple[str, ...]) -> list[Tensor] | None:
    """Weights of a module's linear layers, then its own; None if one is something else by now, such as an adapter.

    Read from the dictionaries of the module: its attributes go through Python, a microsecond each.
    """
    found, children, mine = [], module._modules, module._parameters
    for name in linear:
        child = children[name]
        if type(child) is not nn.Linear or "weight" not in child._parameters:
            return None
        found.append(child._parameters["weight"])
    for name in own:
        if name not in mine:
            return None
        found.append(mine[name])
    return found


def entry(schema: str, run: Callable[..., Any], shapes: Callable[..., Any]) -> Any:
    """A kernel without derivatives as an entry of torch's dispatcher."""
    name = schema.split("(")[0]
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, run, "CPU")
    torch.library.register_fake(f"wonderland::{name}", shapes, lib=_LIBRARY)
    return getattr(torch.ops.wonderland, name).default


def _mamba(x, in_proj, x_proj, dt_proj, out_proj, conv, conv_bias, a_log, skip, dt_bias, tail, state):
    y, after, s = torch.empty_like(x), torch.empty_like(tail), torch.empty_like(state)
    weights = [w.contiguous() for w in (in_proj, conv, conv_bias, x_proj, dt_proj, dt_bias, a_log, skip, out_proj)]
    native.function("mamba_step", "step", x.dtype)(
        x.contiguous(), *weights, tail.contiguous(), state.contiguous(), y, after, s,
        x.shape[0], x.shape[2], skip.shape[0], a_log.shape[1], dt_proj.shape[1], conv.shape[1], torch.get_num_threads(),
    )  # fmt: skip
    return y, after, s


mamba_step = entry(
    "mamba_step(Tensor x, Tensor in_proj, Tensor x_proj, Tensor dt_proj, Tensor out_proj, Tensor conv, "
    "Tensor conv_bias, Tensor a_log, Tensor skip, Tensor dt_bias, Tensor tail, Tensor state) -> (Tensor, Tensor, Tensor)",
    _mamba,
    lambda x, *rest: (torch.empty_like(x), torch.empty_like(rest[-2]), torch.empty_like(rest[-1])),
)


def _rwkv(x, receptance, key, value, output, mix_r, mix_k, mix_v, decay, bonus, last, sums, top, book):
    y, after, high = torch.empty_like(x), torch.empty_like(sums), torch.empty_like(top)
    weights = (mix_r, mix_k, mix_v, receptance, key, value, output, decay, bonus, last, sums, top)
    native.function("rwkv_step", "time", x.dtype)(
        x.contiguous(), *(w.contiguous() for w in weights), y, after, high, x.shape[0], x.shape[2], int(book),
        torch.get_num_threads(),
    )  # fmt: skip
    return y, after, high


rwkv_step = entry(
    "rwkv_step(Tensor x, Tensor receptance, Tensor key, Tensor value, Tensor output, Tensor mix_r, Tensor mix_k, "
    "Tensor mix_v, Tensor decay, Tensor bonus, Tensor last, Tensor sums, Tensor top, bool book) "
    "-> (Tensor, Tensor, Tensor)",
    _rwkv,
    lambda x, *rest: (torch.empty_like(x), torch.empty_like(rest[-3]), torch.empty_like(rest[-2])),
)


def _channel(x, receptance, key, value, mix_r, mix_k, last):
    y = torch.empty_like(x)
    native.function("rwkv_step", "channel", x.dtype)(
        x.contiguous(), *(w.contiguous() for w in (mix_r, mix_k, receptance, key, value, last)), y,
        x.shape[0], x.shape[2], key.shape[0], torch.get_num_threads(),
    )  # fmt: skip
    return y


rwkv_channel_step = entry(
    "rwkv_channel_step(Tensor x, Tensor receptance, Tensor key, Tensor value, Tensor mix_r, Tensor mix_k, Tensor last) "
    "-> Tensor",
    _channel,
    lambda x, *rest: torch.empty_like(x),
)
