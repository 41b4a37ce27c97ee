"""The echo state network: a fixed reservoir, a fitted readout."""

import math

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.echo_state import EchoState


def series(n):
    """Two waves whose periods never meet, with a slow one in their size."""
    i = torch.arange(n, dtype=torch.float64)
    x = torch.sin(0.31 * i) * (1 + 0.5 * torch.sin(0.017 * i)) + 0.5 * torch.sin(math.sqrt(2) * 0.2 * i)
    return x.view(1, n, 1)


def test_the_reservoir_has_the_spectral_radius_asked_for_and_is_not_trained():
    mixer = EchoState(3, state_size=40, spectral_radius=0.7)
    assert abs(float(torch.linalg.eigvals(mixer.reservoir).abs().max()) - 0.7) < 1e-4
    assert {name for name, _ in mixer.named_parameters()} == {"readout.weight", "readout.bias"}
    assert {"reservoir", "entrance"} <= set(mixer.state_dict())


def test_fitted_by_ridge_it_beats_a_naive_forecast_on_what_it_has_not_seen():
    x = series(1200)
    mixer = EchoState(1, state_size=100).double()
    mixer.fit_readout(x[:, :800], x[:, 1:801], ridge=1e-6, washout=50)
    found = mixer(x[:, :-1])[:, 800:]
    error = (found - x[:, 801:]).square().mean()
    naive = (x[:, 800:-1] - x[:, 801:]).square().mean()
    assert error < 1e-3 * naive


def test_the_closed_form_is_where_the_gradient_of_the_ridge_loss_is_zero():
    x = series(200)
    mixer = EchoState(1, state_size=20).double().fit_readout(x[:, :-1], x[:, 1:], ridge=0.1, washout=5)
    loss = (mixer(x[:, :-1]) - x[:, 1:])[:, 5:].square().sum() + 0.1 * mixer.readout.weight.square().sum()
    for slope in torch.autograd.grad(loss, list(mixer.parameters())):
        assert slope.abs().max() < 1e-8


def test_padding_does_not_enter_the_fit():
    x = series(60).expand(2, -1, -1).clone()
    mask = torch.ones(2, 60, dtype=torch.bool)
    mask[1, 40:] = False
    dirty = x.masked_fill(~mask.unsqueeze(2), torch.nan)
    mixer = EchoState(1, state_size=10).double()
    kept = mixer.fit_readout(dirty, dirty, mask=mask).readout.weight.clone()
    changed = x.masked_fill(~mask.unsqueeze(2), 7.0)
    torch.testing.assert_close(mixer.fit_readout(changed, changed, mask=mask).readout.weight, kept)


def test_the_past_fades():
    mixer = EchoState(2, state_size=30, spectral_radius=0.5)
    x = torch.randn(1, 200, 2)
    _, (one, _) = mixer.stream(x)
    _, (two, _) = mixer.stream(x, (torch.randn(1, 30), torch.zeros(1, dtype=torch.int64)))
    torch.testing.assert_close(one, two)


def test_a_leak_is_a_share_of_the_new_state():
    full, leaky = EchoState(2, state_size=6), EchoState(2, state_size=6, leak=0.25)
    leaky.load_state_dict(full.state_dict())
    x, start = torch.randn(1, 1, 2), torch.randn(1, 6)
    state = (start, torch.zeros(1, dtype=torch.int64))
    new, slow = full.stream(x, state)[1][0], leaky.stream(x, state)[1][0]
    torch.testing.assert_close(slow, 0.75 * start + 0.25 * new)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: EchoState(2, state_size=0), "EchoState needs a state_size of at least 1, not 0."),
        (lambda: EchoState(2, leak=0.0), "EchoState needs a leak above 0 and at most 1, not 0.0."),
        (lambda: EchoState(2, spectral_radius=-1.0), "EchoState needs a spectral_radius of at least 0, not -1.0."),
        (
            lambda: EchoState(2).fit_readout(torch.randn(1, 5, 2), torch.randn(1, 4, 2)),
            "fit_readout takes an output for each input, so y has shape (1, 5, 2), not (1, 4, 2).",
        ),
        (
            lambda: EchoState(2).fit_readout(torch.randn(1, 5, 2), torch.randn(1, 5, 2), washout=4),
            "fit_readout has 1 positions after a washout of 4: give longer sequences.",
        ),
    ],
)
def test_wrong_arguments_are_told_so(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence
