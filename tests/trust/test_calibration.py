import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_digits
from torch import nn

from wonderland.trust import ece, fit_temperature, log_softmax, reliability


def test_temperature_undoes_a_known_stretch():
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(20_000, 5))
    y = np.array([generator.choice(5, p=row) for row in np.exp(log_softmax(logits))])
    for stretch in (0.5, 1.0, 4.0):
        assert fit_temperature(stretch * logits, y) == pytest.approx(stretch, rel=0.05)


def test_temperature_is_the_minimum_and_bounded_when_all_is_right():
    generator = np.random.default_rng(1)
    logits = 3 * generator.normal(size=(500, 3))
    y = np.where(generator.random(500) < 0.6, logits.argmax(1), generator.integers(0, 3, 500))
    best = fit_temperature(logits, y)

    def loss(temperature):
        return -log_softmax(logits / temperature)[np.arange(500), y].mean()

    assert loss(best) <= min(loss(best * 1.2), loss(best / 1.2)) + 1e-4
    sure = 10 * np.eye(3)[np.arange(300) % 3]
    assert 0.5 < fit_temperature(sure, np.arange(300) % 3) < 5


def test_reliability_matches_scikit_learn():
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.65, 0.7, 0.8, 0.9, 1.0])
    true, predicted = calibration_curve(y, p, n_bins=3)
    assert true.tolist() == [0, 0.5, 1]
    assert predicted == pytest.approx([0.2, 0.525, 0.85])
    confident = np.stack([1 - p, p], 1)
    found = reliability(confident, y, bins=10)
    assert sum(b.count for b in found) == 9
    by_hand = sum(abs((confident[i].argmax() == y[i]) - confident[i].max()) for i in range(9)) / 9
    assert ece(confident, y, bins=1000) == pytest.approx(by_hand)


def test_an_overconfident_network_is_mended():
    """Trained far too long on few digits, a network is sure of its mistakes; one number cuts the error threefold."""
    x, y = load_digits(return_X_y=True)
    generator = np.random.default_rng(0)
    x = x / 16 + generator.normal(scale=0.4, size=x.shape)
    order = generator.permutation(len(y))
    train, held, test = order[:400], order[400:1000], order[1000:]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    inputs, targets = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[train]), targets[train]).backward()
        optimizer.step()
    logits = model(inputs).detach().numpy()
    temperature = fit_temperature(logits[held], y[held])
    before = ece(np.exp(log_softmax(logits[test])), y[test])
    after = ece(np.exp(log_softmax(logits[test] / temperature)), y[test])
    assert temperature > 1.5
    assert after < before / 3
