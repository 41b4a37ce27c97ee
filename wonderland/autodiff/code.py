"""A trace as Python that reads well and runs to the same values."""

import keyword
import math
import re
from typing import Any

import torch

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Step, Value, spelled

INFIX = {
    "add.Tensor": "+",
    "sub.Tensor": "-",
    "mul.Tensor": "*",
    "div.Tensor": "/",
    "add.Scalar": "+",
    "sub.Scalar": "-",
    "mul.Scalar": "*",
    "div.Scalar": "/",
    "mm.default": "@",
    "bmm.default": "@",
    "mv.default": "@",
    "eq.Tensor": "==",
    "eq.Scalar": "==",
    "ne.Scalar": "!=",
    "lt.Scalar": "<",
    "le.Scalar": "<=",
    "gt.Scalar": ">",
    "ge.Scalar": ">=",
    "lt.Tensor": "<",
    "le.Tensor": "<=",
    "gt.Tensor": ">",
    "ge.Tensor": ">=",
    "pow.Tensor_Scalar": "**",
    "pow.Tensor_Tensor": "**",
}
MOST_NUMBERS = 16
METHODS = frozenset(
    [
        "view",
        "expand",
        "permute",
        "transpose",
        "t",
        "unsqueeze",
        "squeeze",
        "select",
        "repeat",
        "flip",
        "roll",
        "masked_fill",
        "sum",
        "mean",
        "cumsum",
        "amax",
        "amin",
        "argmax",
        "contiguous",
        "clone",
        "detach",
        "index_select",
        "gather",
        "scatter_add",
        "tril",
        "triu",
        "diagonal",
        "cumprod",
        "prod",
        "split",
        "reshape",
    ]
)
FUNCTIONS = frozenset(
    [
        "exp",
        "log",
        "sin",
        "cos",
        "tan",
        "tanh",
        "sinh",
        "cosh",
        "sqrt",
        "rsqrt",
        "sigmoid",
        "relu",
        "abs",
        "neg",
        "erf",
        "reciprocal",
        "sgn",
        "sign",
        "floor",
        "ceil",
        "round",
        "maximum",
        "minimum",
        "where",
        "cat",
        "stack",
        "addmm",
        "baddbmm",
        "logical_not",
        "logical_and",
        "logical_or",
        "isnan",
        "log1p",
        "expm1",
        "square",
        "clamp",
        "atan",
        "atan2",
        "zeros",
        "ones",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full",
        "arange",
        "dot",
        "outer",
    ]
)


def written(trace: Any) -> str:
    """The whole program: imports, signature, one line a step with its shape and the line it came from, the result."""
    names, more = {**trace.names}, closed(trace)
    names.update({id(entry): name for name, entry in more.items() if not isinstance(entry, torch.Tensor)})
    buffers = {id(tensor) for tensor, _ in trace.effects}
    signature = ", ".join([names[id(value)] for value in trace.inputs] + (["*", *more] if more else []))
    lines = ["import torch", "", "aten = torch.ops.aten", "", "", f"def {identifier(trace.name)}({signature}):"]
    lines += [f"    # {names[id(value)]}: {value.words()}" for value in trace.inputs]
    lines += [f"    # {name}: {_kind(entry, buffers)}" for name, entry in more.items()]
    lines += [
        f"    {names[id(value)]} = {numbers(tensor)}"
        for value, tensor in trace.constants
        if names[id(value)] not in more
    ]
    before = ""
    for step in trace.steps:
        text = statement(step, names)
        notes = ", ".join(value.words() for value in step.outputs)
        line = short(step.line)
        seen = f"  {line}" if line and line != before else ""
        before = line
        lines.append(f"    {text}  # {notes}{seen}")
    held = {id(entry): name for name, entry in more.items()}
    lines += [f"    {held[id(tensor)]}.copy_({names[id(value)]})  # a buffer" for tensor, value in trace.effects]
    results = [names[id(one)] if isinstance(one, Value) else repr(one) for one in trace.outputs]
    lines.append(f"    return {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}")
    return "\n".join(lines) + "\n"


def closed(trace: Any) -> dict[str, Any]:
    """What the printed program takes beside its inputs, by name: large constants, buffers, functions and generators."""
    buffers = {id(tensor): tensor for tensor, _ in trace.effects}
    found: dict[str, Any] = {}
    for value, tensor in trace.constants:
        if id(tensor) in buffers or not _small(tensor):
            found[trace.names[id(value)]] = tensor
    read = {id(tensor) for tensor in found.values()}
    found.update({f"b{k}": tensor for k, tensor in enumerate(buffers.values()) if id(tensor) not in read})
    taken, seen = set(trace.names.values()) | set(found), set()
    for step in trace.steps:
        others = [entry for entry in (*step.args, *step.kwargs.values()) if isinstance(entry, torch.Generator)]
        for entry in (*others, *([step.target] if not hasattr(step.target, "_schema") else [])):
            if id(entry) in seen:
                continue
            seen.add(id(entry))
            plain = "generator" if isinstance(entry, torch.Generator) else spelled(entry).rsplit(".", 1)[-1]
            name, number = identifier(plain), 2
            while name in taken:
                name, number = f"{identifier(plain)}_{number}", number + 1
            taken.add(name)
            found[name] = entry
    return found


def _kind(entry: Any, buffers: set[int]) -> str:
    if isinstance(entry, torch.Tensor):
        return f"{Value.of(entry, False).words()}, {'a buffer' if id(entry) in buffers else 'a constant'}"
    return "a generator" if isinstance(entry, torch.Generator) else f"the function {spelled(entry)}"


def _small(tensor: Any) -> bool:
    return tensor.numel() <= MOST_NUMBERS and not tensor.is_complex() and tensor.layout == torch.strided


def numbers(tensor: Any) -> str:
    """A small constant as Python that makes it again, bit for bit."""
    text = re.sub(r"\b(nan|inf)\b", r'float("\1")', str(tensor.tolist()))
    return f"torch.tensor({text}, dtype={tensor.dtype})"


def short(line: str) -> str:
    """A source line without its folders."""
    return line.rsplit("/", 1)[-1]


def identifier(text: str) -> str:
    """A name that Python accepts."""
    found = re.sub(r"\W", "_", text).strip("_") or "program"
    if keyword.iskeyword(found) or found in ("torch", "aten", "float"):
        return f"{found}_"
    return f"p_{found}" if found[0].isdigit() else found


def statement(step: Step, names: dict[int, str]) -> str:
    """One assignment."""
    if isinstance(step.result, Value):
        left = names[id(step.result)]
    else:
        left = ", ".join(names[id(one)] if isinstance(one, Value) else "_" for one in step.result or ()) or "_"
        left += "," if len(step.result or ()) == 1 else ""
    return f"{left} = {expression(step, names)}"


def expression(step: Step, names: dict[int, str]) -> str:
    """The right side: an operator, a method or a function where torch has the same one, else the ATen operator itself."""
    args = [literal(entry, names) for entry in step.args]
    kwargs = [f"{name}={literal(entry, names)}" for name, entry in step.kwargs.items() if not _usual(step, name, entry)]
    name = packet(step.target)
    overload = f"{name}.{step.target._overloadname}" if name else ""
    if overload in INFIX and len(args) == 2 and not kwargs:
        return f"{_tight(args[0])} {INFIX[overload]} {_tight(args[1])}"
    if name == "neg":
        return f"-{args[0]}"
    if name in METHODS and isinstance(step.args[0], Value) and not _ambiguous(step):
        return f"{args[0]}.{name}({', '.join(args[1:] + kwargs)})"
    if name in FUNCTIONS:
        return f"torch.{name}({', '.join(args + kwargs)})"
    if name:
        called = f"aten.{overload}"
    else:
        called = names.get(id(step.target)) or f"torch.ops.{spelled(step.target)}"
    return f"{called}({', '.join(args + kwargs)})"


def _usual(step: Step, name: str, entry: Any) -> bool:
    """Whether an argument is what the operator takes without being told."""
    schema = getattr(step.target, "_schema", None)
    usual = {one.name: one.default_value for one in schema.arguments if one.has_default_value()} if schema else {}
    if name == "pin_memory" and entry is False:
        return True
    return name in usual and not isinstance(entry, Value) and type(entry) is type(usual[name]) and entry == usual[name]


def _tight(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _ambiguous(step: Step) -> bool:
    """Whether a method would read the arguments in another way than the operator does."""
    return packet(step.target) in ("sum", "mean") and bool(step.kwargs.get("dtype"))


def literal(entry: Any, names: dict[int, str]) -> str:
    """An argument as Python."""
    if isinstance(entry, Value):
        return names[id(entry)]
    if isinstance(entry, list | tuple):
        inner = ", ".join(literal(one, names) for one in entry)
        return f"[{inner}]" if isinstance(entry, list) else f"({inner}{',' if len(entry) == 1 else ''})"
    if isinstance(entry, float) and not math.isfinite(entry):
        return f'float("{entry}")'
    if isinstance(entry, complex):
        return f"complex({literal(entry.real, names)}, {literal(entry.imag, names)})"
    if isinstance(entry, torch.Generator):
        return names[id(entry)]
    if isinstance(entry, torch.device):
        return f'torch.device("{entry}")'
    if isinstance(entry, torch.Size):
        return str(list(entry))
    return repr(entry)
