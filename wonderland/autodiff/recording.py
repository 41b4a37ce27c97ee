"""What is arranged around a program while it is recorded: ways out are guarded, modules are named, kernels stay plain."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from wonderland.autodiff.functions import FUNCTIONS_AS_PRIMITIVES
from wonderland.autodiff.local import Shared
from wonderland.autodiff.record import ACTIVE, Recorder, where
from wonderland.core import WonderlandError
from wonderland.ops import native

_LEAVING = {
    Tensor.__deepcopy__: "a deep copy",
    Tensor.numpy: "numpy()",
    Tensor.__array__: "numpy()",
    Tensor.data_ptr: "its address, for a kernel that is not PyTorch's",
    Tensor.__dlpack__: "DLPack",
}
_GRAPH = {
    Tensor.register_hook: "register_hook",
    Tensor.retain_grad: "retain_grad",
    Tensor.backward: "backward",
    torch.autograd.grad: "torch.autograd.grad",
    torch.autograd.backward: "torch.autograd.backward",
}


class _Leaving(TorchFunctionMode):
    """Stops tensors that depend on the inputs from leaving PyTorch: what came back would look like a constant."""

    def __init__(self, recorder: Recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _GRAPH and self._ours(args[0] if args else None):
            raise WonderlandError(
                f"The program uses {_GRAPH[func]} ({where()}), which needs torch's own graph: use autodiff.grad or "
                "autodiff.vjp inside, or leave it out."
            )
        way = _LEAVING.get(func)
        if way and args and isinstance(args[0], Tensor) and self.recorder.value(args[0]).depends:
            raise WonderlandError(
                f"A tensor leaves the program through {way} ({where()}), so its derivative would be lost: "
                "stay in torch operations, or make the function a primitive with autodiff.primitive."
            )
        return func(*args, **(kwargs or {}))

    def _ours(self, entry: Any) -> bool:
        several = entry if isinstance(entry, tuple | list) else [entry]
        return any(isinstance(one, Tensor) and not one.requires_grad and self.recorder.knows(one) for one in several)


@contextmanager
def recording(
    inputs: list[Tensor], module: nn.Module | None = None, *, differentiates: bool = False, equations: bool = False
) -> Iterator[Recorder]:
    """Note what runs in this context as a function of the inputs.

    `differentiates` says that derivatives of the record will be taken, `equations` that no kernel may stand in it for which
    there is only one derivative, as is so within another derivative.
    """
    if torch._C._functorch.peek_interpreter_stack() is not None:  # pyright: ignore[reportAttributeAccessIssue]
        raise WonderlandError(
            "torch.func or torch.vmap is at work around this transform, and its tensors are not what they seem: "
            "use the transforms of autodiff throughout."
        )
    twice = equations or any(one.differentiates for one in ACTIVE)
    recorder = Recorder(inputs, differentiates)
    with ExitStack() as stack:
        stack.enter_context(native.recording("equations" if twice else "kernels"))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(FUNCTIONS_AS_PRIMITIVES.held())
        stack.enter_context(_PLAIN_KERNELS.held())
        stack.enter_context(_BUFFERS.held())
        stack.enter_context(_Leaving(recorder))
        stack.enter_context(torch._C.DisableTorchFunctionSubclass())
        stack.enter_context(recorder)
        if module is not None:
            stack.enter_context(named(module, recorder))
        stack.enter_context(ACTIVE.holding(recorder))
        yield recorder


def _without_mkldnn() -> bool:
    had = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    return had


# Keeps recurrent layers from taking one kernel for all of their steps, which no rule could see into.
_PLAIN_KERNELS = Shared(_without_mkldnn, torch._C._set_mkldnn_enabled)


def _noticed(module: nn.Module, _: Any) -> None:
    if ACTIVE and (module._backward_hooks or module._backward_pre_hooks):
        raise WonderlandError(
            f"{type(module).__name__} has backward hooks, which belong to loss.backward() and would not run here: remove "
            "them, or give a change of gradients as a function with autodiff.primitive(vjp=...)."
        )
    for recorder in ACTIVE:
        for tensor in module._buffers.values():
            if isinstance(tensor, Tensor):
                recorder.lasts(tensor)


# Every module that runs while somebody records shows its buffers: what is written into them is to stay.
_BUFFERS = Shared(lambda: register_module_forward_pre_hook(_noticed), lambda hook: hook.remove())


@contextmanager
def named(module: nn.Module, recorder: Recorder) -> Iterator[None]:
    """Let steps know in which submodule they ran."""
    names = {id(one): name for name, one in module.named_modules()}

    def enter(one: nn.Module, _: Any) -> None:
        recorder._modules.append(names.get(id(one), ""))

    def leave(one: nn.Module, *_: Any) -> None:
        recorder._modules.pop()

    hooks = []
    for one in module.modules():
        hooks += [one.register_forward_pre_hook(enter), one.register_forward_hook(leave, always_call=True)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def quiet() -> Iterator[None]:
    """Without torch's own graph, unless somebody records: then the mode belongs to the program that is recorded."""
    with torch.set_grad_enabled(torch.is_grad_enabled() and bool(ACTIVE)):
        yield
