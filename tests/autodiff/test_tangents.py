"""The literal algorithms agree with jvp and vjp, and cost what the book says."""

import pytest
import torch
from torch import nn

from wonderland import autodiff
from wonderland.autodiff.tangents import literal_forward, literal_reverse
from wonderland.autodiff.trace import call, parameters, trace
from wonderland.core import WonderlandError

FORMS = (literal_forward, literal_reverse)


def layer(h, w):
    return torch.tanh(w @ h)


def chain(depth, width):
    """A chain of layers with weights, and its sum: the book's program."""
    weights = [torch.randn(width, width, dtype=torch.float64) for _ in range(depth)]
    return [layer] * depth, torch.randn(width, dtype=torch.float64), weights


def composed(functions):
    def whole(x, *weights):
        for function, weight in zip(functions, weights, strict=True):
            x = function(x, weight)
        return x.sum()

    return whole


@pytest.mark.parametrize("form", FORMS)
def test_chains_equal_reverse_mode(form):
    functions, x, weights = chain(3, 4)
    found = form(functions, x, *weights)
    true = autodiff.grad(composed(functions), (0, 1, 2, 3))(x, *weights)
    for gradient, expected in zip(found.gradients(), true, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_tangents_of_weights_are_updated_as_often_as_the_book_says(depth):
    functions, x, weights = chain(depth, 3)
    found = literal_forward(functions, x, *weights)
    # l (l - 1) / 2 for the weights, and l - 1 more for x.
    assert found.updates == depth * (depth - 1) // 2 + depth - 1
    assert found.products == sum(3 * 3 * 9 * i + 3 * 3 * 3 for i in range(1, depth))


def test_reverse_takes_one_update_for_each_argument():
    functions, x, weights = chain(4, 3)
    found = literal_reverse([*functions, torch.sum], x, *weights, None)
    # The last Jacobian is the first adjoint; each layer then multiplies it by two Jacobians.
    assert found.updates == 2 * 4
    assert found.products == 4 * (3 * 9 + 3 * 3)


def test_forward_costs_grow_with_inputs_and_reverse_costs_with_outputs():
    def cost(form, inputs, outputs):
        w, v = torch.randn(8, inputs, dtype=torch.float64), torch.randn(outputs, 8, dtype=torch.float64)
        return form([lambda x: w @ x, torch.tanh, lambda h: v @ h], torch.randn(inputs, dtype=torch.float64)).products

    assert cost(literal_forward, 50, 1) > 5 * cost(literal_reverse, 50, 1)
    assert cost(literal_reverse, 1, 50) > 5 * cost(literal_forward, 1, 50)
    assert cost(literal_forward, 40, 3) == 2 * cost(literal_forward, 20, 3)
    assert cost(literal_reverse, 3, 40) > 1.9 * cost(literal_reverse, 3, 20)


def test_forward_holds_less_on_a_long_chain_of_few_inputs():
    steps = [torch.sin] * 60
    x = torch.tensor(0.3, dtype=torch.float64)
    assert literal_forward(steps, x).kept < 10 < 60 < literal_reverse(steps, x).kept


@pytest.mark.parametrize("form", FORMS)
def test_traces_with_branches_and_shared_inputs(form):
    def f(x, w):
        h = torch.tanh(x @ w)
        return (h * torch.sin(h) + x.sum()) / (1 + h.square().sum()) + x.mean() * w.sum()

    args = torch.randn(2, 3, dtype=torch.float64), torch.randn(3, 3, dtype=torch.float64)
    found = form(trace(f, *args), *args)
    torch.testing.assert_close(found.out, f(*args))
    assert found.jacobians[0].shape == (2, 3, 2, 3)
    for table, true in zip(found.jacobians, autodiff.jacobian(f, (0, 1))(*args), strict=True):
        torch.testing.assert_close(table, true, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_traces_of_modules_and_steps_with_several_outputs(form):
    model = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 2)).double()
    x, own = torch.randn(3, 4, dtype=torch.float64), parameters(model)
    found = form(trace(model, x), own, x)
    true = autodiff.jacobian(lambda own: call(model, own, x))(own)
    for table, expected in zip(found.jacobians[:-1], true.values(), strict=True):
        torch.testing.assert_close(table, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_shared_weight_adds_its_gradients(form):
    w = torch.randn(3, 3, dtype=torch.float64)
    x = torch.randn(3, dtype=torch.float64)
    found = form(trace(lambda w: layer(layer(x, w), w).sum(), w), w)
    apart = form([layer, layer], x, w, w.clone()).gradients()
    torch.testing.assert_close(found.jacobians[0], apart[1] + apart[2])


@pytest.mark.parametrize("form", FORMS)
def test_whole_numbers_and_stopped_values_have_no_derivative(form):
    index, x = torch.tensor([2, 0]), torch.randn(3, dtype=torch.float64)

    def f(x, index):
        with torch.no_grad():
            scale = x.exp()
        return (x[index] * x.detach()[index] * scale[index]).sum()

    found = form(trace(f, x, index), x, index)
    torch.testing.assert_close(found.jacobians[0], autodiff.grad(f)(x, index))
    assert not found.jacobians[1].any()


@pytest.mark.parametrize("form", FORMS)
def test_comparisons_pass_nothing_on(form):
    x = torch.tensor([-1.0, 2.0], dtype=torch.float64)
    found = form(trace(lambda x: torch.where(x > 0, x**2, 3 * x).sum(), x), x)
    assert torch.equal(found.jacobians[0], torch.tensor([3.0, 4.0], dtype=torch.float64))


@pytest.mark.parametrize("form", FORMS)
def test_an_input_given_back_has_the_identity_for_jacobian(form):
    x = torch.ones(2)
    assert torch.equal(form(trace(lambda x, y: x, x, x), x, x).jacobians[0], torch.eye(2))
    assert not form(trace(lambda x, y: x, x, x), x, x).jacobians[1].any()


def test_error_messages():
    x = torch.ones(2)
    with pytest.raises(WonderlandError, match="takes 1 tensors and was given 2"):
        literal_forward(trace(torch.sin, x), x, x)
    with pytest.raises(WonderlandError, match="returns 2 results, and the literal algorithms need a single tensor"):
        literal_reverse(trace(lambda x: (x, 2 * x), x), x)
    for form in FORMS:
        with pytest.raises(WonderlandError, match="literal algorithms need real numbers"):
            form(trace(lambda x: torch.fft.fft(x).real.sum(), x), x)
    with pytest.raises(WonderlandError, match="at least one function"):
        literal_forward([], x)
    with pytest.raises(WonderlandError, match="2 weights for 1 functions"):
        literal_forward([layer], x, x, x)
