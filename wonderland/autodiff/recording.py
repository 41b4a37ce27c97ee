"""The context in which a program is recorded: a recorder, guards against tensors that escape it, and module names."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from wonderland.autodiff.functions import AUTOGRAD_FUNCTIONS_AS_PRIMITIVES
from wonderland.autodiff.recorder import ACTIVE, Recorder, where
from wonderland.autodiff.threads import SharedPatch
from wonderland.core import WonderlandError
from wonderland.ops import native

_ESCAPES = {
    Tensor.__deepcopy__: "a deep copy",
    Tensor.numpy: "numpy()",
    Tensor.__array__: "numpy()",
    Tensor.data_ptr: "its address, for a kernel outside PyTorch",
    Tensor.__dlpack__: "DLPack",
}
_GRAPH = {
    Tensor.register_hook: "register_hook",
    Tensor.retain_grad: "retain_grad",
    Tensor.backward: "backward",
    torch.autograd.grad: "torch.autograd.grad",
    torch.autograd.backward: "torch.autograd.backward",
}


class _EscapeGuard(TorchFunctionMode):
    """Raises an error when a tensor that depends on the inputs leaves PyTorch: what came back would be taken for a constant."""

    def __init__(self, recorder: Recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _GRAPH and self._tracks(args[0] if args else None):
            raise WonderlandError(
                f"The program uses {_GRAPH[func]} ({where()}), which needs torch's own graph: use autodiff.grad or "
                "autodiff.vjp inside, or leave it out."
            )
        escape = _ESCAPES.get(func)
        if escape and args and isinstance(args[0], Tensor) and self.recorder.value(args[0]).depends:
            raise WonderlandError(
                f"A tensor leaves the program through {escape} ({where()}), so its derivative would be lost: "
                "stay in torch operations, or make the function a primitive with autodiff.primitive."
            )
        return func(*args, **(kwargs or {}))

    def _tracks(self, entry: Any) -> bool:
        entries = entry if isinstance(entry, tuple | list) else [entry]
        tensors = [tensor for tensor in entries if isinstance(tensor, Tensor)]
        return any(not tensor.requires_grad and self.recorder.depends_on_inputs(tensor) for tensor in tensors)


@contextmanager
def recording(
    inputs: list[Tensor], module: nn.Module | None = None, *, differentiates: bool = False, equations: bool = False
) -> Iterator[Recorder]:
    """Record what runs in this context as a function of the inputs.

    `differentiates` says that derivatives of this recording will be taken. With `equations`, or inside another recording
    that will be differentiated, the fused kernels of `wonderland.ops` are replaced by their equations, since the kernels
    have first derivatives only.
    """
    if torch._C._functorch.peek_interpreter_stack() is not None:  # pyright: ignore[reportAttributeAccessIssue]
        raise WonderlandError(
            "This transform is called inside torch.func or torch.vmap, whose tensors it cannot record: "
            "use the transforms of autodiff throughout."
        )
    twice = equations or any(recorder.differentiates for recorder in ACTIVE)
    recorder = Recorder(inputs, differentiates)
    with ExitStack() as stack:
        stack.enter_context(native.recording("equations" if twice else "kernels"))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(AUTOGRAD_FUNCTIONS_AS_PRIMITIVES.applied())
        stack.enter_context(_MKLDNN_OFF.applied())
        stack.enter_context(_MODULE_CHECKS.applied())
        stack.enter_context(_EscapeGuard(recorder))
        stack.enter_context(torch._C.DisableTorchFunctionSubclass())
        stack.enter_context(recorder)
        if module is not None:
            stack.enter_context(module_names(module, recorder))
        stack.enter_context(ACTIVE.pushed(recorder))
        yield recorder


def _disable_mkldnn() -> bool:
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    return enabled


# Without MKLDNN, recurrent layers run step by step; its fused kernel for a whole layer has no derivative rule.
_MKLDNN_OFF = SharedPatch(_disable_mkldnn, torch._C._set_mkldnn_enabled)


def _check_module(module: nn.Module, _: Any) -> None:
    if ACTIVE and (module._backward_hooks or module._backward_pre_hooks):
        raise WonderlandError(
            f"{type(module).__name__} has backward hooks, which only loss.backward() runs: remove "
            "them, or change gradients with autodiff.primitive(vjp=...) instead."
        )
    for recorder in ACTIVE:
        for tensor in module._buffers.values():
            if isinstance(tensor, Tensor):
                recorder.track_buffer(tensor)


# Before each module runs, its buffers are registered with the recorders: writes into them are effects of the trace.
_MODULE_CHECKS = SharedPatch(lambda: register_module_forward_pre_hook(_check_module), lambda hook: hook.remove())


@contextmanager
def module_names(module: nn.Module, recorder: Recorder) -> Iterator[None]:
    """Record for each step the name of the submodule in which it ran."""
    names = {id(child): name for name, child in module.named_modules()}

    def enter(child: nn.Module, _: Any) -> None:
        recorder._modules.append(names.get(id(child), ""))

    def leave(child: nn.Module, *_: Any) -> None:
        recorder._modules.pop()

    hooks = []
    for child in module.modules():
        hooks += [child.register_forward_pre_hook(enter), child.register_forward_hook(leave, always_call=True)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def no_torch_graph() -> Iterator[None]:
    """Disable torch's autograd graph, except while recording, where the grad mode belongs to the recorded program."""
    with torch.set_grad_enabled(torch.is_grad_enabled() and bool(ACTIVE)):
        yield
