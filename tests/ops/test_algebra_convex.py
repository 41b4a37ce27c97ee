"""Projections, convexity and constraints: their defining properties, on random points."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland import WonderlandError
from wonderland.ops.algebra import (
    find_negative_curvature,
    find_nonconvexity,
    jensen_gap,
    lagrangian,
    minimise,
    project_box,
    project_l1,
    project_l2,
    project_linf,
    project_simplex,
)

BALLS = {
    "l1": (project_l1, lambda x: x.abs().sum(-1) <= 1 + 1e-9),
    "l2": (project_l2, lambda x: x.norm(dim=-1) <= 1 + 1e-9),
    "linf": (project_linf, lambda x: x.abs().amax(-1) <= 1 + 1e-9),
    "simplex": (project_simplex, lambda x: ((x.sum(-1) - 1).abs() < 1e-9) & (x >= 0).all(-1)),
    "box": (lambda x: project_box(x, -0.5, 2.0), lambda x: ((x >= -0.5) & (x <= 2)).all(-1)),
}
numbers = st.floats(-1e3, 1e3, allow_nan=False)
points = st.lists(numbers, min_size=1, max_size=6).map(lambda x: torch.tensor(x, dtype=torch.float64))


@pytest.mark.parametrize("name", BALLS)
@given(point=points, seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_projection_is_inside_idempotent_and_nearest(name, point, seed):
    project, inside = BALLS[name]
    found = project(point)
    assert inside(found)
    torch.testing.assert_close(project(found), found, rtol=1e-9, atol=1e-9)
    # The angle criterion is necessary and sufficient: (x - P x)'(z - P x) <= 0 for every z of the set.
    others = project(
        3 * torch.randn(50, len(point), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    )
    assert ((others - found) @ (point - found)).max() <= 1e-9 * (1 + point.norm())


@pytest.mark.parametrize("name", BALLS)
@given(a=points, seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_projections_bring_points_no_further_apart(name, a, seed):
    project, _ = BALLS[name]
    b = a + 10 * torch.randn(len(a), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert (project(a) - project(b)).norm() <= (a - b).norm() * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("name", BALLS)
def test_rows_are_projected_one_by_one(name):
    project, _ = BALLS[name]
    x = 3 * torch.randn(4, 5, dtype=torch.float64)
    torch.testing.assert_close(project(x), torch.stack([project(row) for row in x]))


def test_clipping_a_gradient_is_a_projection():
    parameter = torch.nn.Parameter(torch.zeros(4, dtype=torch.float64))
    parameter.grad = torch.tensor([3.0, -4.0, 12.0, 0.0], dtype=torch.float64)
    before = parameter.grad.clone()
    torch.nn.utils.clip_grad_norm_([parameter], 2.0)
    torch.testing.assert_close(parameter.grad, project_l2(before, 2.0), rtol=1e-5, atol=0)


CONVEX = {
    "square": lambda x: x.square().sum(-1),
    "norm": lambda x: x.norm(dim=-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "largest": lambda x: x.amax(-1),
    "linear": lambda x: x.sum(-1) - 7,
    "exp": lambda x: x.exp().sum(-1),
}
BENT = {
    "sine": lambda x: x.sin().sum(-1),
    "minus square": lambda x: -x.square().sum(-1),
    "saddle": lambda x: x[..., 0] * x[..., 1],
    "root": lambda x: x.abs().sqrt().sum(-1),
    "small bump": lambda x: x.square().sum(-1) + 0.02 * (30 * x[..., 0]).sin(),
}
LOW, HIGH = [-2.0, -2.0], [2.0, 2.0]


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("seed", range(3))
def test_no_witness_against_convex_functions(name, seed):
    assert find_nonconvexity(CONVEX[name], LOW, HIGH, seed=seed) is None
    x = torch.randn(20, 2, dtype=torch.float64)
    weights = torch.rand(20, dtype=torch.float64)
    assert jensen_gap(CONVEX[name], x, weights / weights.sum()) >= -1e-12


@pytest.mark.parametrize("name", BENT)
def test_a_witness_proves_itself(name):
    f = BENT[name]
    found = find_nonconvexity(f, LOW, HIGH)
    assert found is not None
    middle = found.weight * found.a + (1 - found.weight) * found.b
    chord = found.weight * f(found.a[None]) + (1 - found.weight) * f(found.b[None])
    assert float(f(middle[None]) - chord) == pytest.approx(found.excess, abs=1e-12)
    assert found.excess > 0
    assert str(found).startswith("not convex: between [")


def test_the_hessian_test_agrees():
    for name in ("square", "logsumexp", "exp", "linear"):
        assert find_negative_curvature(CONVEX[name], LOW, HIGH) is None
    for name in ("sine", "minus square", "saddle"):
        point, bend = find_negative_curvature(BENT[name], LOW, HIGH)
        hessian = torch.autograd.functional.hessian(BENT[name], point)
        assert float(torch.linalg.eigvalsh(hessian)[0]) == pytest.approx(bend)
        assert bend < 0


def test_jensen_of_the_logarithm_bounds_a_mixture():
    prior, likelihood = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64), torch.rand(3, 1, dtype=torch.float64)
    assert jensen_gap(lambda x: -x[:, 0].log(), likelihood, prior) >= 0


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=10, deadline=None)
def test_a_quadratic_on_a_plane_has_the_solution_of_its_kkt_system(seed, n):
    generator = torch.Generator().manual_seed(seed)
    root, b, normal = (torch.randn(s, generator=generator, dtype=torch.float64) for s in ((n, n), (n,), (n,)))
    normal = normal / normal.norm()
    q = root @ root.T + torch.eye(n, dtype=torch.float64)
    found = minimise(lambda x: x @ q @ x / 2 - b @ x, [0.0] * n, equal=lambda x: (normal @ x - 1).reshape(1))
    top = torch.cat([q, normal.unsqueeze(1)], 1)
    system = torch.cat([top, torch.cat([normal, normal.new_zeros(1)]).unsqueeze(0)])
    exact = torch.linalg.solve(system, torch.cat([b, b.new_ones(1)]))
    torch.testing.assert_close(found.point, exact[:-1], rtol=0, atol=1e-5)
    torch.testing.assert_close(found.equal_multipliers, exact[-1:], rtol=1e-4, atol=1e-4)


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=10, deadline=None)
def test_the_nearest_point_of_a_ball_is_the_projection_and_kkt_holds(seed, n):
    target = 2 * torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = minimise(
        lambda x: (x - target).square().sum(), [0.1] * n, below=lambda x: (x.square().sum() - 1).reshape(1)
    )
    torch.testing.assert_close(found.point, project_l2(target), rtol=0, atol=1e-5)
    assert (found.below_multipliers >= 0).all()
    assert found.stationarity < 1e-5
    assert found.slackness < 1e-5
    if target.norm() < 0.999:
        assert found.below_multipliers.abs().max() < 1e-5


def test_the_lagrangian_is_flat_at_the_solution_and_bounds_the_objective():
    """D2L 12.2.3: with the prices of the solution, its gradient vanishes there; at points that obey, it is at most f."""

    def f(x):
        return (x - torch.tensor([2.0, 1.0], dtype=torch.float64)).square().sum()

    def equal(x):
        return (x[0] - 2 * x[1]).reshape(1)

    def below(x):
        return (x.square().sum() - 1).reshape(1)

    solution = minimise(f, [0.1, 0.1], equal=equal, below=below)

    def value(x):
        return lagrangian(f, x, equal(x), below(x), solution.equal_multipliers, solution.below_multipliers)

    point = solution.point.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(value(point), point)
    assert gradient.abs().max() < 1e-5
    assert value(solution.point).item() == pytest.approx(f(solution.point).item(), abs=1e-5)
    x = torch.tensor([0.4, 0.2], dtype=torch.float64)
    prices = torch.tensor([0.7], dtype=torch.float64), torch.tensor([0.5], dtype=torch.float64)
    assert lagrangian(f, x, equal(x), below(x), *prices).item() == pytest.approx(
        (1.6**2 + 0.8**2) + 0.7 * 0.0 + 0.5 * (0.2 - 1)
    )
    x = torch.tensor([0.5, 0.3], dtype=torch.float64)
    assert lagrangian(f, x, equal(x), below(x), *prices).item() == pytest.approx(
        (1.5**2 + 0.7**2) + 0.7 * -0.1 + 0.5 * (0.34 - 1)
    )


def test_a_penalty_breaks_the_constraint_by_its_price_over_rho():
    def solved(tolerance, method):
        equal = lambda x: (x.sum() - 1).reshape(1)  # noqa: E731
        return minimise(lambda x: x.square().sum(), [0.0, 0.0], equal=equal, method=method, tolerance=tolerance)

    loose, tight = solved(1e-2, "penalty"), solved(1e-5, "penalty")
    assert 0 < tight.violation < loose.violation
    # Exactly: x = rho / (2 rho + 2), so the breach is 1 / (rho + 1), for rho = 10, 100, ...
    assert loose.violation == pytest.approx(1 / 101, rel=1e-6) or loose.violation == pytest.approx(1 / 1001, rel=1e-6)
    assert tight.equal_multipliers.item() == pytest.approx(-1, abs=1e-4)
    assert solved(1e-9, "augmented").violation < 1e-9


def test_a_simplex_by_constraints_is_the_simplex_by_sorting():
    x = torch.tensor([0.9, 0.4, -0.7], dtype=torch.float64)
    found = minimise(
        lambda z: (z - x).square().sum(), [0.3, 0.3, 0.3], equal=lambda z: (z.sum() - 1).reshape(1), below=lambda z: -z
    )
    torch.testing.assert_close(found.point, project_simplex(x), rtol=0, atol=1e-6)


SENTENCES = [
    (lambda: project_l2([1.0], radius=-1.0), "`radius` has to be a positive number, not -1.0."),
    (lambda: project_box([1.0], low=2.0, high=1.0), "`low` lies above `high`: the box is empty."),
    (lambda: project_simplex([1.0], total=0.0), "`total` has to be a positive number, not 0.0."),
    (
        lambda: find_nonconvexity(lambda x: x, [0.0], [1.0], samples=4),
        "`f` gave shape (4, 1) for points (4, 1): it has to give one number a row.",
    ),
    (
        lambda: find_nonconvexity(lambda x: x.sum(-1), [0.0], [0.0]),
        "`low` has to lie below `high` in every coordinate, and have as many of them.",
    ),
    (
        lambda: jensen_gap(lambda x: x.sum(-1), [[0.0], [1.0]], [0.5, 0.6]),
        "`weights` has to be non-negative and sum to 1; its sum is 1.1, its smallest entry 0.5.",
    ),
    (lambda: jensen_gap(lambda x: x.sum(-1), [[0.0], [1.0]], [1.0]), "`weights` has 1 entries for 2 points."),
    (
        lambda: jensen_gap(lambda x: (x.sum(-1) - 9).log(), [[0.0]]),
        "`f` gave NaN at [0.0]: choose `low` and `high` inside its domain.",
    ),
    (
        lambda: minimise(lambda x: x.sum(), [0.0], method="lagrange"),
        "`method` has to be one of 'augmented', 'penalty', not 'lagrange'.",
    ),
    (
        lambda: minimise(lambda x: x.sum(), [0.0], equal=lambda x: x.sum()),
        "`equal` gave shape (): it has to give a vector, one entry a constraint.",
    ),
    (
        lambda: minimise(lambda x: x.square().sum(), [0.0], equal=lambda x: torch.cat([x - 1, x + 1]), rounds=5),
        "No point that keeps the constraints was found: the largest breach after 5 rounds is 1. They may contradict each "
        "other; otherwise try another `start` or a larger `tolerance`.",
    ),
    (
        lambda: minimise(lambda x: -x.pow(3).sum(), [1.0]),
        "The search ran off to infinity: `f` has no minimum where the constraints hold.",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_what_is_said(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()
