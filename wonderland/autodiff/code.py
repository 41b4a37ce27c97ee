"""A trace as readable Python source that runs and gives the same values."""

import keyword
import math
import re
from typing import Any

import torch

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Step, Value, target_name

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
MAX_INLINE_NUMBERS = 16
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


def python_source(trace: Any) -> str:
    """The whole program: imports, signature, one line for each step with its shape and source line, the return."""
    names, extra = {**trace.names}, captured(trace)
    names.update({id(entry): name for name, entry in extra.items() if not isinstance(entry, torch.Tensor)})
    buffers = {id(tensor) for tensor, _ in trace.effects}
    signature = ", ".join([names[id(value)] for value in trace.inputs] + (["*", *extra] if extra else []))
    lines = ["import torch", "", "aten = torch.ops.aten", "", "", f"def {identifier(trace.name)}({signature}):"]
    lines += [f"    # {names[id(value)]}: {value.describe()}" for value in trace.inputs]
    lines += [f"    # {name}: {_describe(entry, buffers)}" for name, entry in extra.items()]
    lines += [
        f"    {names[id(value)]} = {tensor_literal(tensor)}"
        for value, tensor in trace.constants
        if names[id(value)] not in extra
    ]
    previous_line = ""
    for step in trace.steps:
        text = statement(step, names)
        notes = ", ".join(value.describe() for value in step.outputs)
        line = file_line(step.line)
        shown_line = f"  {line}" if line and line != previous_line else ""
        previous_line = line
        lines.append(f"    {text}  # {notes}{shown_line}")
    extra_names = {id(entry): name for name, entry in extra.items()}
    lines += [f"    {extra_names[id(tensor)]}.copy_({names[id(value)]})  # a buffer" for tensor, value in trace.effects]
    results = [names[id(output)] if isinstance(output, Value) else repr(output) for output in trace.outputs]
    lines.append(f"    return {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}")
    return "\n".join(lines) + "\n"


def captured(trace: Any) -> dict[str, Any]:
    """The keyword arguments of the printed program beside its inputs: large constants, buffers, functions, generators."""
    buffers = {id(tensor): tensor for tensor, _ in trace.effects}
    extra: dict[str, Any] = {}
    for value, tensor in trace.constants:
        if id(tensor) in buffers or not _is_inline(tensor):
            extra[trace.names[id(value)]] = tensor
    read = {id(tensor) for tensor in extra.values()}
    extra.update({f"b{k}": tensor for k, tensor in enumerate(buffers.values()) if id(tensor) not in read})
    taken, seen = set(trace.names.values()) | set(extra), set()
    for step in trace.steps:
        others = [entry for entry in (*step.args, *step.kwargs.values()) if isinstance(entry, torch.Generator)]
        for entry in (*others, *([step.target] if not hasattr(step.target, "_schema") else [])):
            if id(entry) in seen:
                continue
            seen.add(id(entry))
            base = "generator" if isinstance(entry, torch.Generator) else target_name(entry).rsplit(".", 1)[-1]
            name, number = identifier(base), 2
            while name in taken:
                name, number = f"{identifier(base)}_{number}", number + 1
            taken.add(name)
            extra[name] = entry
    return extra


def _describe(entry: Any, buffers: set[int]) -> str:
    if isinstance(entry, torch.Tensor):
        return f"{Value.of(entry, False).describe()}, {'a buffer' if id(entry) in buffers else 'a constant'}"
    return "a generator" if isinstance(entry, torch.Generator) else f"the function {target_name(entry)}"


def _is_inline(tensor: Any) -> bool:
    return tensor.numel() <= MAX_INLINE_NUMBERS and not tensor.is_complex() and tensor.layout == torch.strided


def tensor_literal(tensor: Any) -> str:
    """A small constant as a Python expression with exactly the same values."""
    text = re.sub(r"\b(nan|inf)\b", r'float("\1")', str(tensor.tolist()))
    return f"torch.tensor({text}, dtype={tensor.dtype})"


def file_line(line: str) -> str:
    """A "path:line" without its folders."""
    return line.rsplit("/", 1)[-1]


def identifier(text: str) -> str:
    """The text turned into a valid Python name."""
    name = re.sub(r"\W", "_", text).strip("_") or "program"
    if keyword.iskeyword(name) or name in ("torch", "aten", "float"):
        return f"{name}_"
    return f"p_{name}" if name[0].isdigit() else name


def statement(step: Step, names: dict[int, str]) -> str:
    """A step as one assignment."""
    if isinstance(step.result, Value):
        left = names[id(step.result)]
    else:
        left = ", ".join(names[id(value)] if isinstance(value, Value) else "_" for value in step.result or ()) or "_"
        left += "," if len(step.result or ()) == 1 else ""
    return f"{left} = {expression(step, names)}"


def expression(step: Step, names: dict[int, str]) -> str:
    """The right side: an operator, a method or a function where torch has the same one, else the ATen operator itself."""
    args = [literal(entry, names) for entry in step.args]
    kwargs = [
        f"{name}={literal(entry, names)}" for name, entry in step.kwargs.items() if not _is_default(step, name, entry)
    ]
    name = packet(step.target)
    overload = f"{name}.{step.target._overloadname}" if name else ""
    if overload in INFIX and len(args) == 2 and not kwargs:
        return f"{_parenthesized(args[0])} {INFIX[overload]} {_parenthesized(args[1])}"
    if name == "neg":
        return f"-{args[0]}"
    if name in METHODS and isinstance(step.args[0], Value) and not _ambiguous(step):
        return f"{args[0]}.{name}({', '.join(args[1:] + kwargs)})"
    if name in FUNCTIONS:
        return f"torch.{name}({', '.join(args + kwargs)})"
    if name:
        called = f"aten.{overload}"
    else:
        called = names.get(id(step.target)) or f"torch.ops.{target_name(step.target)}"
    return f"{called}({', '.join(args + kwargs)})"


def _is_default(step: Step, name: str, entry: Any) -> bool:
    """Whether an argument has its default value."""
    schema = getattr(step.target, "_schema", None)
    arguments = schema.arguments if schema else ()
    defaults = {argument.name: argument.default_value for argument in arguments if argument.has_default_value()}
    if name == "pin_memory" and entry is False:
        return True
    if name not in defaults or isinstance(entry, Value):
        return False
    return type(entry) is type(defaults[name]) and entry == defaults[name]


def _parenthesized(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _ambiguous(step: Step) -> bool:
    """Whether the tensor method would interpret the arguments differently from the operator."""
    return packet(step.target) in ("sum", "mean") and bool(step.kwargs.get("dtype"))


def literal(entry: Any, names: dict[int, str]) -> str:
    """An argument as Python."""
    if isinstance(entry, Value):
        return names[id(entry)]
    if isinstance(entry, list | tuple):
        inner = ", ".join(literal(item, names) for item in entry)
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
