"""Forecasting models against their equations, written a second time, and the laws of those that stream."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import wonderland
from wonderland import nn
from wonderland.core import WonderlandError
from wonderland.models import (
    TCN,
    DeepAR,
    DLinear,
    ForecastBlend,
    LinearAutoregression,
    NBeats,
    NLinear,
    PatchTST,
    Seq2SeqForecaster,
    SequenceForecaster,
    TemporalBlock,
)
from wonderland.models.series.blend import shares_of
from wonderland.models.series.smoothing import smooth

SIZES = {"context": 24, "horizon": 5, "channels": 2, "known": 3}
MODELS = {
    "autoregression": LinearAutoregression.spec(**SIZES, individual=True),
    "nlinear": NLinear.spec(**SIZES),
    "dlinear": DLinear.spec(**SIZES, kernel=7, outputs=2),
    "tcn": TCN.spec(**SIZES, dim=8, depth=2),
    "attention": SequenceForecaster.spec(**SIZES, dim=8, depth=1),
    "mamba": SequenceForecaster.spec(**SIZES, dim=8, depth=1, mixer=nn.Mamba.spec()),
    "wavenet": SequenceForecaster.spec(
        **SIZES, dim=8, depth=3, mixer=[nn.GatedConvolution.spec(dilation=2**i) for i in range(3)]
    ),
    "deepar": DeepAR.spec(**SIZES, dim=8, depth=1, outputs=2, draws=4),
    "seq2seq": Seq2SeqForecaster.spec(**SIZES, dim=8, cell="lstm"),
    "patchtst": PatchTST.spec(**SIZES, dim=8, depth=1, patch=8, stride=4),
    "nbeats": NBeats.spec(**SIZES, hidden=8, bases=["trend", "season", "generic"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_rebuilt_from_its_spec_and_every_weight_learns(name):
    from wonderland.core import Spec

    spec = MODELS[name]
    model = Spec.from_json(spec.to_json()).build()
    x, known, y = torch.randn(3, 24, 2), torch.randn(3, 29, 3), torch.randn(3, 5, 2)
    make = getattr(model, "training_outputs", None)
    made = model(x, known, None) if make is None else make(x, known, None, y)
    assert made.shape == (3, 5, 2, model.outputs)
    made.square().sum().backward()
    idle = {name for name, value in model.named_parameters() if value.grad is None or not value.grad.any()}
    assert not idle - {"blocks.5.back.weight", "blocks.5.back.bias"}  # what the last block explains is read by none
    model.eval()
    with torch.no_grad():  # a window alone is forecast as among others
        assert torch.allclose(model(x, known)[:1], model(x[:1], known[:1]), atol=1e-4)


def test_dlinear_is_the_equation():
    model, x = DLinear(context=12, horizon=4, channels=2, kernel=5), torch.randn(3, 12, 2)
    padded = F.pad(x.transpose(1, 2), (2, 2), mode="replicate")
    trend = padded.unfold(-1, 5, 1).mean(-1)
    rest = x.transpose(1, 2) - trend
    wanted = (
        rest @ model.season.weight[0].T + model.season.bias[0] + trend @ model.trend.weight[0].T + model.trend.bias[0]
    )
    assert torch.allclose(model(x)[..., 0], wanted.transpose(1, 2), atol=1e-6)


def test_a_temporal_block_is_two_convolutions_of_torch_and_keeps_its_laws():
    block, x = TemporalBlock(dim=4, width=3, dilation=2), torch.randn(2, 9, 4)
    h = x.transpose(1, 2)
    for layer in (block.first, block.second):
        h = F.relu(F.conv1d(F.pad(h, (4, 0)), layer.weight, layer.bias, dilation=2))
    assert torch.allclose(block(x), F.relu(x + h.transpose(1, 2)), atol=1e-6)
    verdicts = wonderland.check(block, torch.randn(2, 7, 4), laws=["causality", "streaming", "batch_independence"])
    assert verdicts, str(verdicts)


def test_a_causal_model_fed_piece_by_piece_equals_the_whole():
    model = TCN(context=16, horizon=3, dim=4, depth=3).eval()
    steps = torch.randn(2, 16, 1)
    whole = model.stack(model.read(steps))
    pieces, state = [], None
    for piece in steps.split([1, 6, 2, 7], 1):
        made, state = model.stream(piece, state)
        pieces.append(made)
    assert torch.allclose(torch.cat(pieces, 1), whole, atol=1e-6)


def test_nbeats_adds_the_forecasts_of_blocks_that_read_the_rest():
    model, x = NBeats(context=8, horizon=3, hidden=4, blocks=2, bases=["trend"], degree=2), torch.randn(2, 8, 1)
    rest, made = (x - x[:, -1:])[..., 0], torch.zeros(2, 3)
    for block in model.blocks:
        h = rest
        for i in range(0, 8, 2):
            h = F.relu(F.linear(h, block.body[i].weight, block.body[i].bias))
        t, ahead = torch.arange(8) / 8, torch.arange(3) / 3
        back = sum((h @ block.back.weight.T)[:, i : i + 1] * t**i for i in range(3))
        made = made + sum((h @ block.ahead.weight.T)[:, i : i + 1] * ahead**i for i in range(3))
        rest = rest - back
    assert torch.allclose(model(x)[..., 0, 0], made + x[:, -1], atol=1e-5)


def test_patches_are_those_of_the_paper():
    model = PatchTST(context=336, horizon=96)
    assert model.count == 42  # PatchTST/42: patches of 16 steps, 8 apart, the end repeated
    with pytest.raises(
        WonderlandError, match=r"^PatchTST cuts patches of 16 steps, and the context has 6: give a smaller patch\.$"
    ):
        PatchTST(context=6, horizon=2)


def test_deepar_reads_true_values_in_training_and_its_own_in_forecasts():
    model = DeepAR(context=6, horizon=3, outputs=1, dim=4, depth=1)
    x = torch.randn(2, 6, 1)
    own = model.eval()(x)
    forced = model.training_outputs(x, None, None, own[..., 0])
    assert torch.allclose(own, forced, atol=1e-6)  # where the truth is its own forecast, both are the same


def test_exponential_smoothing_is_the_recursion():
    x, (a, b, g, p), m = torch.randn(1, 13).double(), (0.3, 0.2, 0.4, 0.9), 4
    head = x[0, :m].mean()
    trend = (x[0, m : 2 * m].mean() - head) / m
    level = head + trend * (m - 1) / 2
    wave = {i - m: x[0, i] - head - trend * (i - (m - 1) / 2) for i in range(m)}
    for t in range(m, 13):
        before, s = level, wave[t - 2 * m]
        level = a * (x[0, t] - s) + (1 - a) * (before + p * trend)
        trend = b * (level - before) + (1 - b) * p * trend
        wave[t - m] = g * (x[0, t] - level) + (1 - g) * s
    wanted = [level + sum(p**i for i in range(1, h + 2)) * trend + wave[13 + h - 2 * m] for h in range(m)]
    made = smooth(x, m, m, torch.tensor([[a, b, g, p]]).double())
    assert np.allclose(made[0].numpy(), [float(value) for value in wanted])


def test_shares_go_to_the_forecast_that_is_right_and_to_none_that_is_far_off():
    draw = np.random.default_rng(0)
    errors = torch.from_numpy(draw.normal(size=(400, 3, 1)) * np.array([1.0, 0.1, 5.0])[:, None])
    shares = shares_of(errors, overlap=1)
    assert shares[1] > 0.95
    assert shares[2] == 0


def test_a_blend_computes_in_double_precision_from_single():
    x = torch.randn(3, 24, 1, generator=torch.Generator().manual_seed(0)) * 1e-3 + 5
    model = ForecastBlend(context=24, horizon=5, season=7, forecasts=["last", "season", "smoothing", "log smoothing"])
    forecasts = model(x)
    assert forecasts.dtype == torch.float64
    assert torch.equal(forecasts, model(x.double()))


def test_a_blend_refuses_what_it_is_not_made_of():
    with pytest.raises(WonderlandError, match=r"^A ForecastBlend is made of last, .*, not magic\.$"):
        ForecastBlend(context=4, horizon=2, forecasts=["magic"])
    with pytest.raises(WonderlandError, match=r"^NLinear needs horizon of at least 1, not 0\.$"):
        NLinear(context=4, horizon=0)


def test_effects_of_what_is_known_ahead_are_found_and_those_of_noise_are_left_out():
    draw = np.random.default_rng(0)
    steps, context, horizon = 400, 16, 4
    noise = torch.from_numpy(draw.normal(size=(steps, 2))).float()
    level = torch.from_numpy(np.cumsum(draw.normal(size=steps) * 0.1)).float()
    for effect, tolerance in ((torch.tensor([2.0, 0.0]), 0.05), (torch.zeros(2), 0.0)):
        values = (level + noise @ effect)[:, None]
        first = torch.arange(steps - context - horizon)
        x = torch.stack([values[i : i + context] for i in first])
        y = torch.stack([values[i + context : i + context + horizon] for i in first])
        known = torch.stack([noise[i : i + context + horizon] for i in first])
        about = torch.tensor([0.0, 0.0, 1.0]).repeat(len(x), 1)
        windows = (x, y, torch.ones_like(y, dtype=torch.bool), about, known)
        model = ForecastBlend(context=context, horizon=horizon, known=2, forecasts=["last"])
        model.fit_effects(
            lambda era, all=windows: tuple(part[:300] for part in all), tuple(part[300:] for part in windows)
        )
        assert torch.allclose(model.effects[:, 0, :, 0], effect.expand(4, 2), atol=tolerance)
        errors = [float((model(x, given, about)[..., 0] - y).detach().abs().mean()) for given in (known, None)]
        assert errors[0] < 0.3 * errors[1] if effect.any() else errors[0] == errors[1]
