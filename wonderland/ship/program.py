"""A run as one torch program: preprocessing, model, calibration and conformal sets, from named inputs to named outputs."""

from typing import Any

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.data.ports import Port, Preprocessing


class Program(nn.Module):
    """From the tensors of the ports to the answers of a run. Texts come in as their codes, and a class goes out as its number."""

    def __init__(self, preprocessing: Preprocessing, model: nn.Module, answers: nn.Module):
        super().__init__()
        self.preprocessing, self.model, self.answers = preprocessing, model, answers

    @property
    def ports(self) -> tuple[Port, ...]:
        """The inputs."""
        return self.preprocessing.ports

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return self.answers.names  # pyright: ignore

    @property
    def classes(self) -> list[str] | None:
        """The names of classes, where the first output is the number of one."""
        return self.answers.classes  # pyright: ignore

    def forward(self, *values: Tensor) -> Any:
        x = self.preprocessing(*values)
        inputs = x if isinstance(x, tuple) else (x,)
        if callable(asks := getattr(self.answers, "of_model", None)):
            return asks(self.model, *inputs)
        outputs = self.model(*inputs[: self.preprocessing.model_inputs])
        return self.answers(outputs, *inputs) if getattr(self.answers, "reads_inputs", False) else self.answers(outputs)


def program(run: Any, level: float, *, double: bool = False) -> Program:
    """The program of a run; raises with the reason where it has none."""
    why: str | None = getattr(run.model, "no_export", None)
    preprocessing = run.encoder.module(double=double)
    answers = run.task.answers(run.trust, level)
    for part in (why, preprocessing, answers):
        if isinstance(part, str):
            raise WonderlandError(f"The run in {run.folder} cannot be exported. {part}")
    return Program(preprocessing, run.model, answers).eval()


def exported(program: Any, sizes: dict[str, int]) -> torch.export.ExportedProgram:
    """The program as a graph of torch operations, with free lengths; `sizes` are lengths to trace with."""
    lengths = dict.fromkeys(sizes, torch.export.Dim.DYNAMIC)
    shapes = [{i: lengths[s] for i, s in enumerate(port.shape) if s in lengths} for port in program.ports]
    examples = tuple(port.example(sizes) for port in program.ports)
    with torch.no_grad():
        graph = torch.export.export(program, examples, dynamic_shapes=(tuple(shapes),), strict=False)
        if not any(_is_complex(node) for node in graph.graph.nodes):
            return graph
        # ONNX has no complex numbers: those that follow from parameters alone are computed now.
        folded: Any = graph.module(check_guards=False)
        from torch._inductor.constant_folding import constant_fold  # loads torch's compiler

        constant_fold(folded)
        return torch.export.export(folded, examples, dynamic_shapes=tuple(shapes), strict=False)


def _is_complex(node: Any) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.is_complex()
