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
        return self.answers(self.model(*x) if isinstance(x, tuple) else self.model(x))


def program(run: Any, level: float, *, double: bool = False) -> Program:
    """The program of a run; raises with the reason where it has none."""
    preprocessing = run.encoder.module(double=double)
    answers = run.task.answers(run.trust, level)
    for part in (preprocessing, answers):
        if isinstance(part, str):
            raise WonderlandError(f"The run in {run.folder} cannot be exported. {part}")
    return Program(preprocessing, run.model, answers).eval()


def exported(program: Program, sizes: dict[str, int], *, fixed: tuple[str, ...] = ()) -> torch.export.ExportedProgram:
    """The program as a graph of torch operations, with free lengths but for those in `fixed`; `sizes` are lengths to trace with."""
    lengths = {name: torch.export.Dim.DYNAMIC for name in sizes if name not in fixed}
    shapes = [{i: lengths[s] for i, s in enumerate(port.shape) if s in lengths} for port in program.ports]
    examples = tuple(port.example(sizes) for port in program.ports)
    with torch.no_grad():
        return torch.export.export(program, examples, dynamic_shapes=(tuple(shapes),), strict=False)
