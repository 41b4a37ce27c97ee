"""What the books state about derivatives, activations and update rules, as properties that can fail."""

import math

import pytest
import torch
from torch import nn

from wonderland import autodiff, ops, optim
from wonderland.nn import gelu, leaky_relu, sigmoid, silu, tanh
from wonderland.tasks import penalties


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_tangent_is_the_book_s():
    f = lambda x: x**2 - 1.5 * x  # noqa: E731
    x = torch.tensor(0.5, dtype=torch.float64)
    value, push = autodiff.linearize(f, x)
    step = torch.tensor(0.01, dtype=torch.float64)
    assert f(x + step).item() == pytest.approx(-0.5049)
    assert (value + push(step)).item() == pytest.approx(-0.5050)


def test_identities_of_matrix_calculus():
    """D2L 22.3: gradients of products and forms, and of the factorisation |X - UV|²."""
    a, x = torch.randn(4, 4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    b = torch.randn(4, dtype=torch.float64)
    grad = autodiff.grad
    torch.testing.assert_close(grad(lambda x: b @ x)(x), b)
    torch.testing.assert_close(grad(lambda x: x @ a @ x)(x), (a + a.T) @ x)
    torch.testing.assert_close(grad(lambda x: x @ x)(x), 2 * x)
    torch.testing.assert_close(autodiff.jacobian(lambda x: a @ x)(x), a)
    u, v, whole = (torch.randn(*shape, dtype=torch.float64) for shape in ((4, 2), (2, 5), (4, 5)))
    torch.testing.assert_close(grad(lambda v: (whole - u @ v).square().sum())(v), -2 * u.T @ (whole - u @ v))
    square = a @ a.T + torch.eye(4)
    torch.testing.assert_close(grad(lambda m: torch.logdet(m))(square), torch.linalg.inv(square).T)
    # Alice prints v W^T for the input of a layer; it is v W.
    _, pull = autodiff.vjp(lambda x: a @ x, x)
    torch.testing.assert_close(pull(b)[0], b @ a)


def test_gradients_add_up_until_they_are_cleared():
    x = nn.Parameter(torch.arange(4.0))
    optimizer = optim.SGD([x], lr=0.1)
    for count in (1, 2):
        (2 * x @ x).backward()
        torch.testing.assert_close(x.grad, count * 4 * x.detach())
    optimizer.zero_grad()
    assert x.grad is None


def test_leaky_and_parametric_relu():
    s = torch.tensor([-2.0, 0.0, 3.0])
    torch.testing.assert_close(leaky_relu(s), torch.tensor([-0.02, 0.0, 3.0]))
    layer = nn.PReLU(init=0.1)
    torch.testing.assert_close(layer(s), torch.tensor([-0.2, 0.0, 3.0]))
    layer(s).sum().backward()
    assert layer.weight.grad.item() == -2  # the slope learns from negative inputs


def test_tanh_is_a_sigmoid_of_twice_its_input():
    s = torch.linspace(-3, 3, 13, dtype=torch.float64)
    torch.testing.assert_close(tanh(s), 2 * sigmoid(2 * s) - 1)
    assert (tanh(s) - (2 * sigmoid(s) - 1)).abs().max() > 0.2  # what Alice 5.4 prints
    slope = autodiff.grad(lambda s: sigmoid(s).sum())(s)
    assert slope.max() == 0.25


@pytest.mark.parametrize(("f", "place", "low"), [(gelu, -0.752, -0.1700), (silu, -1.278, -0.2785)])
def test_the_lowest_points_of_gelu_and_silu(f, place, low):
    s = torch.linspace(-3, 1, 4001, dtype=torch.float64)
    values = f(s)
    assert values.min().item() == pytest.approx(low, abs=5e-5)
    assert s[values.argmin()].item() == pytest.approx(place, abs=2e-3)


def steps(kind, gradients, start=1.0, **options):
    """The path of one weight under given gradients."""
    x = nn.Parameter(torch.tensor([start], dtype=torch.float64))
    optimizer = kind([x], **options)
    path = [start]
    for g in gradients:
        x.grad = torch.tensor([g], dtype=torch.float64)
        optimizer.step()
        path.append(x.item())
    return path


def test_decay_and_l2_are_one_for_sgd_and_two_for_adam():
    """Alice 9.2.1 (T9.01, T9.02): without a gradient decay shrinks by a factor; Adam with L2 takes whole steps."""
    assert steps(optim.AdamW, [0.0] * 10, lr=0.01, weight_decay=0.1)[-1] == pytest.approx((1 - 0.001) ** 10)
    assert steps(optim.AdamW, [0.0] * 10, lr=0.01, weight_decay=0.1)[-1] == pytest.approx(0.99004, abs=1e-5)
    assert steps(optim.Adam, [0.0] * 10, lr=0.01, weight_decay=0.1)[-1] == pytest.approx(0.90035, abs=1e-5)
    # For plain SGD: L2 of strength s in the loss is a weight_decay of 2 s, is decay beside the rule by 2 s.
    x, paths = 0.3, []
    w = nn.Parameter(torch.tensor([x], dtype=torch.float64))
    plain = optim.SGD([w], lr=0.1)
    for _ in range(5):
        plain.zero_grad()
        penalties.l2(w, 0.2).backward()
        plain.step()
    paths.append(w.item())
    paths.append(steps(optim.SGD, [0.0] * 5, x, lr=0.1, weight_decay=0.4)[-1])
    paths.append(steps(lambda p, **o: optim.decayed(optim.SGD(p, **o), 0.4), [0.0] * 5, x, lr=0.1)[-1])
    assert paths == pytest.approx([x * (1 - 0.04) ** 5] * 3, abs=1e-15)


def test_the_ball_of_a_constraint_shrinks_as_the_penalty_grows():
    """Alice 9.2.1 says that mu grows with lambda; it falls."""
    a = torch.randn(30, 4, dtype=torch.float64, generator=draw())
    y = torch.randn(30, dtype=torch.float64, generator=draw(1))
    eye = torch.eye(4, dtype=torch.float64)
    sizes = [torch.linalg.solve(a.T @ a + s * eye, a.T @ y).square().sum().item() for s in (0, 1, 10, 100)]
    assert sizes == sorted(sizes, reverse=True)


def test_below_sets_of_convex_functions_are_convex():
    """D2L 12.2: with two points their whole segment lies in {x : f(x) <= b}; not so for a function with two minima."""

    def broken(f):
        x, y = 4 * torch.randn(2, 20_000, dtype=torch.float64, generator=draw())
        share = torch.rand(20_000, dtype=torch.float64, generator=draw(1))
        bound = torch.maximum(f(x), f(y))
        return int((f(share * x + (1 - share) * y) > bound + 1e-9).sum())

    assert broken(lambda x: 0.5 * x**2) == broken(lambda x: torch.exp(0.5 * x)) == 0
    assert broken(lambda x: torch.cos(math.pi * x)) > 100
    assert ops.algebra.find_nonconvexity(lambda p: torch.cos(math.pi * p[:, 0]), [-2.0], [2.0]) is not None


def test_drawing_with_replacement_misses_a_third():
    """D2L 12.4: of n rows, n draws with replacement meet a share of 1 - 1/e; without, every one."""
    n = 5000
    seen = len(torch.randint(n, (n,), generator=draw()).unique()) / n
    assert seen == pytest.approx(1 - 1 / math.e, abs=0.02)
    assert len(torch.randperm(n, generator=draw()).unique()) == n


def test_the_bound_of_sgd_holds():
    """D2L 12.4: for convex losses with gradients of size at most L, started r away, E[loss(mean x)] - best <= r L / sqrt T."""
    rows = torch.randn(50, dtype=torch.float64, generator=draw())  # losses |x - row|, L = 1
    median = rows.median()
    best = (rows - median).abs().mean()
    steps_, r = 400, 3.0
    gaps = []
    for seed in range(5):
        x = nn.Parameter((median + r).reshape(1).clone())
        optimizer = optim.SGD([x], lr=r / math.sqrt(steps_))
        total = torch.zeros(1, dtype=torch.float64)
        for i in torch.randint(50, (steps_,), generator=draw(seed)).tolist():
            total += x.detach()
            x.grad = torch.sign(x.detach() - rows[i])
            optimizer.step()
        gaps.append(((rows - total / steps_).abs().mean() - best).item())
    assert 0 < sum(gaps) / len(gaps) < r / math.sqrt(steps_)


def test_a_rate_that_falls_with_the_root_comes_to_rest():
    """D2L 12.4, 12.11: under noise a constant rate keeps wandering; lr / sqrt(t + 1) settles and still arrives."""
    assert [optim.square_root(t, 100) for t in (0, 3, 24, 99)] == pytest.approx([1, 1 / 2, 1 / 5, 1 / 10])

    def distances(schedule):
        x = nn.Parameter(torch.tensor([3.0], dtype=torch.float64))
        optimizer, noise, away = optim.SGD([x], lr=0.3), draw(), []
        for t in range(2000):
            optimizer.param_groups[0]["lr"] = 0.3 * schedule(t, 2000)
            x.grad = x.detach() + torch.randn(1, dtype=torch.float64, generator=noise)
            optimizer.step()
            away.append(x.item() ** 2)
        return sum(away[-500:]) / 500

    assert distances(optim.square_root) < 0.1 * distances(optim.constant)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_momentum_adds_up_to_a_rate(momentum):
    """D2L 12.6: under one gradient forever, steps grow to the rate over 1 - beta."""
    path = steps(optim.Momentum, [1.0] * 300, lr=0.1, momentum=momentum)
    assert path[-2] - path[-1] == pytest.approx(0.1 / (1 - momentum))


def test_the_memory_of_rmsprop_fades_and_sums_to_one():
    """D2L 12.8: s is the squared gradients with weights (1 - gamma) gamma^k, which sum to 1."""
    gradients = torch.randn(40, dtype=torch.float64, generator=draw()).tolist()
    x = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = optim.RMSProp([x], lr=0.01, alpha=0.9)
    for g in gradients:
        x.grad = torch.tensor([g], dtype=torch.float64)
        optimizer.step()
    weights = [0.1 * 0.9**k for k in range(40)]
    expected = sum(w * g * g for w, g in zip(weights, reversed(gradients), strict=True))
    assert optimizer.state[x]["square_avg"].item() == pytest.approx(expected)
    assert sum(0.1 * 0.9**k for k in range(1000)) == pytest.approx(1)


def test_adagrad_falls_like_one_over_the_root():
    path = steps(optim.AdaGrad, [1.0] * 100, lr=0.5, eps=0.0)
    assert [path[t] - path[t + 1] for t in (0, 24, 99)] == pytest.approx([0.5, 0.5 / 5, 0.5 / 10])


def test_bias_correction_makes_the_first_step_the_rate():
    """D2L 12.10: without it the first step would be (1 - b1) / sqrt(1 - b2) = 3.16 of the rate."""
    for size in (1e-3, 1.0, 1e3):
        first = steps(optim.Adam, [size], lr=0.01)
        assert first[0] - first[1] == pytest.approx(0.01, rel=1e-4)
    assert (1 - 0.9) / math.sqrt(1 - 0.999) == pytest.approx(3.162, abs=1e-3)


def test_the_rule_of_adam_is_the_equation_of_the_book():
    """D2L 12.10, written out for one number; the kernel takes the same steps as the rule."""
    gradients = torch.randn(12, dtype=torch.float64, generator=draw()).tolist()
    options = {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-2, "weight_decay": 0.3}
    x, v, s, expected = 1.0, 0.0, 0.0, [1.0]
    for t, g in enumerate(gradients, 1):
        g = g + 0.3 * x
        v, s = 0.8 * v + 0.2 * g, 0.95 * s + 0.05 * g * g
        x -= 0.02 * (v / (1 - 0.8**t)) / (math.sqrt(s / (1 - 0.95**t)) + 1e-2)
        expected.append(x)
    weight = torch.tensor([1.0], dtype=torch.float64)
    state, path = optim.rules.adam.init(weight, options), [1.0]
    for g in gradients:
        step, state = optim.rules.adam.update(torch.tensor([g], dtype=torch.float64), state, weight, options)
        weight = weight + step
        path.append(weight.item())
    assert path == pytest.approx(expected, rel=1e-12)
    assert steps(optim.Adam, gradients, **options) == pytest.approx(expected, rel=1e-12)


def test_yogi_forgets_a_large_gradient_slowly():
    """D2L 12.10: where s is far above g², Adam lets it fall by a share of s, Yogi by a share of g² only."""
    gradients = [10.0] + [0.1] * 50
    found = {}
    for kind in (optim.Adam, optim.Yogi):
        x = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        optimizer = kind([x], lr=0.01, betas=(0.9, 0.9))
        for g in gradients:
            x.grad = torch.tensor([g], dtype=torch.float64)
            optimizer.step()
        found[kind] = optimizer.state[x]["exp_avg_sq"].item()
    assert found[optim.Yogi] == pytest.approx(10 - 50 * 0.1 * 0.01, abs=1e-4)
    assert found[optim.Adam] < 0.1


def test_a_saddle_a_local_minimum_and_a_plateau():
    """D2L 12.1: x³ at 0, x cos(pi x) near -0.25 and 1.1, tanh at 4, x² - y² at 0."""
    at = lambda value: torch.tensor(value, dtype=torch.float64)  # noqa: E731
    slope = autodiff.grad
    assert slope(lambda x: x**3)(at(0.0)) == slope(slope(lambda x: x**3))(at(0.0)) == 0
    wave = lambda x: x * torch.cos(math.pi * x)  # noqa: E731
    ends = []
    for start in (-0.5, 0.8):
        x = nn.Parameter(at([start]))
        optimizer = optim.SGD([x], lr=0.02)
        for _ in range(200):
            optimizer.zero_grad()
            wave(x).sum().backward()
            optimizer.step()
        ends.append(x.item())
    assert wave(at(ends[0])) > wave(at(ends[1]))  # a local minimum keeps descent from the lower one
    assert slope(torch.tanh)(at(4.0)).item() == pytest.approx(0.0013, abs=5e-5)
    bent = autodiff.hessian(lambda p: p[0] ** 2 - p[1] ** 2)(at([0.0, 0.0]))
    assert torch.linalg.eigvalsh(bent).tolist() == [-2, 2]
