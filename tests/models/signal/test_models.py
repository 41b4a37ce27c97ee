"""Models of signals: padding is never read, specs rebuild them, every weight learns."""

import pytest
import torch

from wonderland.core import Spec, WonderlandError
from wonderland.models import InceptionTime, MelConvNet, Recogniser, Rocket, SpectrogramTransformer, WaveConvNet
from wonderland.models.signal.rocket import PATTERNS, rounded
from wonderland.ops.ctc import ctc_loss
from wonderland.solvers.ridge_loo import ridge_loo

SPECS = [
    MelConvNet.spec(outputs=3, channels=16, dim=4, depth=2),
    WaveConvNet.spec(outputs=3, channels=2, dim=4, depth=2, width=9, stride=3),
    InceptionTime.spec(outputs=3, channels=2, dim=4, depth=4, width=9),
    SpectrogramTransformer.spec(outputs=3, channels=16, length=40, patch=4, dim=8, depth=1, heads=2),
]


def signals(spec, steps=30):
    return torch.randn(3, steps, spec.arguments["channels"], generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_padding_is_never_read(spec):
    model = spec.build().double().eval()
    for norm in model.modules():
        if hasattr(norm, "running_mean"):
            norm.running_mean.normal_()
    x = signals(spec).double()
    alone = model(x)
    padded = torch.cat([x, torch.full((3, 10, x.shape[2]), torch.nan, dtype=x.dtype)], 1)
    torch.testing.assert_close(model(padded), alone)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_it_is_rebuilt_from_its_spec_and_every_weight_learns(spec):
    model = Spec.from_json(spec.to_json()).build()
    model(signals(spec)).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.parameters())


def test_another_number_of_channels_is_refused():
    with pytest.raises(WonderlandError, match=r"MelConvNet takes signals \(batch, steps, 16\), not \(3, 30, 2\)."):
        SPECS[0].build()(torch.zeros(3, 30, 2))
    with pytest.raises(WonderlandError, match=r"SpectrogramTransformer reads 40 frames, not 41."):
        SPECS[3].build()(torch.zeros(3, 41, 16))


def rows(count=40, steps=30, seed=0):
    draw = torch.Generator().manual_seed(seed)
    y = torch.arange(count) % 2
    pitch = torch.where(y == 1, 0.9, 0.5)[:, None]
    x = torch.sin(pitch * torch.arange(steps) + 6 * torch.rand(count, 1, generator=draw))
    return (x + 0.3 * torch.randn(count, steps, generator=draw))[..., None], y


def test_rocket_features_are_their_formulas():
    x, _ = rows(5)
    x[1, 20:] = torch.nan
    model = Rocket(2, 1, 30, kernels=PATTERNS)
    model.fit_biases(x)
    z = model.transform(x)
    (dilation, count), *more = model.plans[0]
    assert (count, more) == (1, [])
    x = rounded(x.nan_to_num(0.0))
    for row, length in ((0, 30), (1, 20)):
        h = model.outputs_of(x[row : row + 1, :length].transpose(1, 2), 0, 0, dilation)[0]
        above = h > model.biases[:PATTERNS, None]
        count = above.sum(1).clamp_min(1)
        expected = [above.float().mean(1), torch.where(above, h - model.biases[:PATTERNS, None], 0).sum(1) / count,
                    (above * torch.arange(length)).sum(1) / count / length]  # fmt: skip
        torch.testing.assert_close(z[row, : 3 * PATTERNS], torch.cat(expected))


def test_rocket_rounds_signals_so_that_sums_are_exact_in_any_order():
    x, _ = rows(5)
    near = rounded(x * torch.tensor([1.0, 1e-6, 1e9, 3.0, 0.0])[:, None, None])
    kernels = Rocket(2, 1, 30, kernels=PATTERNS).weights(0, 0)
    exact = torch.nn.functional.conv1d(near.double().transpose(1, 2), kernels.double(), padding=4)
    assert torch.equal(torch.nn.functional.conv1d(near.transpose(1, 2), kernels, padding=4).double(), exact)
    assert ((near[0] - x[0]).abs() <= x[0].abs().max() * 2.0**-15).all()


def test_rocket_learns_in_one_step_and_members_learn_from_rows_of_their_own():
    x, y = rows()
    model = Rocket(2, 1, 30, kernels=PATTERNS, members=2)
    index = torch.stack([torch.arange(30), torch.arange(10, 40)])
    model.fit_rows(x[index], y[index])
    new, truth = rows(seed=1)
    assert (model(new).mean(0).argmax(-1) == truth).float().mean() > 0.9
    torch.testing.assert_close(model(new[index])[1], model(new)[1, 10:40], atol=1e-4, rtol=1e-4)
    with pytest.raises(WonderlandError, match=r"Rocket needs signals of at least 2 steps, 84 kernels or more"):
        Rocket(2, 1, 1)


def test_the_ridge_leaves_rows_out_in_closed_form():
    draw = torch.Generator().manual_seed(0)
    x, y = (
        torch.randn(12, 30, generator=draw, dtype=torch.float64),
        torch.randn(12, 2, generator=draw, dtype=torch.float64),
    )
    penalty = 0.1
    fit = ridge_loo(x, y, (penalty,))
    size = (x - x.mean(0)).square().sum(1).mean()
    wide = torch.cat([x - x.mean(0), size.sqrt().expand(12, 1)], 1)
    for row in range(12):
        others = torch.arange(12) != row
        a, b = wide[others], (y - y.mean(0))[others]
        weight = torch.linalg.solve(a.T @ a + penalty * size * torch.eye(31, dtype=x.dtype), a.T @ b)
        torch.testing.assert_close(fit.left_out[row], wide[row] @ weight + y.mean(0))
    centred = x - x.mean(0)
    direct = torch.linalg.solve(
        centred.T @ centred + penalty * size * torch.eye(30, dtype=x.dtype), centred.T @ (y - y.mean(0))
    )
    torch.testing.assert_close(fit.weight, direct)


def test_a_recogniser_gives_a_text_the_same_likelihood_however_far_it_is_padded():
    model = Recogniser.spec(outputs=4, channels=8, dim=8, depth=1, maps=2).build().double().eval()
    x, targets = torch.randn(2, 21, 8, dtype=torch.float64), torch.tensor([[1, 2], [3, -1]])
    padded = torch.cat([x, torch.full((2, 9, 8), torch.nan, dtype=x.dtype)], 1)
    torch.testing.assert_close(ctc_loss(model(padded), targets), ctc_loss(model(x), targets))
