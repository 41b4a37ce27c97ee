import pytest
import torch
from torch import nn

from wonderland.train import NonFinite, State, Supervised, adamw, run
from wonderland.train.guard import ADVICE


class Breaks(nn.Module):
    def forward(self, x):
        return torch.log(x - x - 1)


def train(model, loss=None, lr=0.01, **options):
    loss = loss or (lambda model, batch: model(batch["x"]).square().mean())
    batch = (torch.randn(4, 3), torch.zeros(4))
    state = State(model=model, optimizer=adamw(model, lr=lr))
    return run(Supervised(loss, 10, lr, **options), state, [batch], steps=10)


def test_the_layer_is_named():
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), Breaks()), nn.Linear(3, 1))
    with pytest.raises(NonFinite) as caught:
        train(model)
    assert str(caught.value) == (
        "The loss became nan at step 0: the first layer with a non-finite output is model.1.1 (Breaks). " + ADVICE
    )
    assert not any(layer._forward_hooks for layer in model.modules())


def test_the_loss_itself_is_named():
    with pytest.raises(NonFinite) as caught:
        train(nn.Linear(3, 1), lambda model, batch: model(batch["x"]).mean() / 0)
    assert "every layer's output is finite, so it arose in the loss itself." in str(caught.value)


def test_a_non_finite_gradient_is_named_before_the_update():
    model = nn.Linear(3, 1, bias=False)
    before = model.weight.detach().clone()
    with pytest.raises(NonFinite) as caught:
        train(model, lambda model, batch: (model(batch["x"]) * 0).sqrt().sum())
    assert str(caught.value) == (
        "The gradient became nan at step 0: the gradient of weight is not finite. "
        "Lower the learning rate, or look at the data of this batch."
    )
    assert torch.equal(model.weight, before)


def test_weights_that_are_no_longer_finite_are_named():
    model = nn.Linear(3, 1)

    def spoil(state, batch):
        with torch.no_grad():
            state.model.bias.fill_(float("inf"))
        return {"loss": float("nan")}

    with pytest.raises(NonFinite) as caught:
        run(spoil, State(model=model), [None], steps=3)
    assert str(caught.value).startswith("The loss became nan at step 0: the weights model.bias are no longer finite.")


def test_a_custom_steps_gradient_is_named():
    model = nn.Linear(3, 1)

    def custom(state, batch):
        state.model.bias.grad = torch.tensor([float("inf")])
        return {"loss": 1.0, "gradient_norm": float("inf")}

    with pytest.raises(NonFinite, match=r"but the gradient of model\.bias is not"):
        run(custom, State(model=model), [None], steps=3)


def test_an_evaluation_that_is_not_finite_stops():
    with pytest.raises(NonFinite, match=r"^The validation/loss became nan at step 1"):
        run(
            lambda state, batch: {"loss": 0.0}, State(model=nn.Linear(1, 1)), [None], steps=1,
            evaluate=lambda state: {"validation/loss": float("nan")},
        )  # fmt: skip
