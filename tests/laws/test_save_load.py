"""Save and load detects state that is missing in the file."""

import pytest
import torch
from torch import nn

from wonderland.core import Part, Spec, admit
from wonderland.laws import Example, save_load

X = Example.floats(2, 5, 4)


class Mean(nn.Module):
    """Follows the mean of its inputs in training."""

    def __init__(self, kept: str):
        super().__init__()
        if kept == "attribute":
            self.mean = torch.zeros(4)
        else:
            self.register_buffer("mean", torch.zeros(4), persistent=kept == "buffer")

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean((0, 1))
        return x - self.mean


def test_what_is_saved_comes_back():
    assert save_load(nn.Sequential(nn.Linear(4, 4), Mean("buffer")), X).outcome == "holds"


@pytest.mark.parametrize("kept", ["attribute", "buffer kept out"])
def test_a_buffer_that_is_not_saved_is_named(kept):
    verdict = save_load(nn.Sequential(nn.Linear(4, 4), Mean(kept)), X)
    assert not verdict
    assert verdict.witness.startswith("output ")
    assert verdict.witness.endswith("after loading: 1.mean is not in the state dict and changed in training")


@pytest.mark.parametrize(
    ("keep", "name"),
    [
        (lambda module: setattr(module, "extra", [nn.Linear(4, 4)]), "extra[0].bias"),
        (lambda module: setattr(module, "extra", {"a": nn.Parameter(torch.ones(4, 4))}), "extra['a']"),
        (lambda module: setattr(module, "extra", torch.ones(4, requires_grad=True)), "extra"),
    ],
)
def test_what_is_trained_and_not_registered_is_named(keep, name):
    class Hiding(nn.Linear):
        def forward(self, x):
            held = self.extra
            held = held[0].weight if isinstance(held, list) else held["a"] if isinstance(held, dict) else held
            return super().forward(x) * held.to(x).mean()

    module = Hiding(4, 4)
    keep(module)
    assert save_load(module, X).witness.endswith(f"after loading: {name} is trained and not in the state dict")


def test_tied_and_complex_parameters_come_back():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(4, 4, bias=False)
            self.two = nn.Linear(4, 4, bias=False)
            self.two.weight = self.one.weight
            self.turn = nn.Parameter(torch.randn(4, dtype=torch.complex64))

        def forward(self, x):
            return (self.two(self.one(x)) * self.turn).real

    assert save_load(Tied(), X).outcome == "holds"


def test_a_state_that_cannot_be_loaded_is_told():
    class Stubborn(nn.Linear):
        def load_state_dict(self, *args, **kwargs):
            raise RuntimeError("no")

    assert save_load(Stubborn(4, 4), X).witness == "it raised RuntimeError (no) when it was saved and loaded"


class Scaled(Part, nn.Module):
    """Holds its spec; what `secret` says is in no argument of it."""

    def __init__(self, dim: int, secret: float = 1.0):
        super().__init__()
        self.inner, self.secret = nn.Linear(dim, dim), secret
        self.spec = Spec("own.Scaled", {"dim": dim})

    def forward(self, x):
        return self.inner(x) * self.secret


def test_a_spec_is_written_read_and_built():
    admit([Scaled])
    assert save_load(Scaled(4), X).outcome == "holds"
    verdict = save_load(Scaled(4, secret=2.0), X)
    assert not verdict
    assert verdict.witness.startswith("built from its spec, output ")
