"""Fit a curve with a gap, and compare what ensembles, Laplace, SWAG, dropout, variational layers and draws say there."""

import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn

from examples.lab import Claim, above, lines, run, table
from wonderland.nn import VariationalLinear, divergence, monte_carlo
from wonderland.probability.gaussian_process import RBF, GaussianProcess
from wonderland.trust import KroneckerLaplace, LastLayerLaplace, NetworkPosterior, Swag, ensemble_outputs

NOISE = 0.1
PLACES = torch.linspace(-2.5, 2.5, 101).unsqueeze(1)
INSIDE, GAP, BEYOND = (
    (PLACES.abs() - 1.25).abs().flatten() < 0.4,
    PLACES.abs().flatten() < 0.4,
    PLACES.abs().flatten() > 2.3,
)


def rows() -> tuple[Tensor, Tensor]:
    """Rows on both sides of a gap from -0.75 to 0.75."""
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.linspace(-1.75, -0.75, 40), torch.linspace(0.75, 1.75, 40)]).unsqueeze(1)
    return x, torch.sin(3 * x) + NOISE * torch.randn(80, 1, generator=generator)


def network(seed: int, dropout: float = 0.0, width: int = 50) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Dropout(dropout), nn.Linear(width, 1))


def train(
    model: nn.Module, steps: int = 1500, rate: float = 0.02, extra: Callable[[], Tensor] | None = None
) -> nn.Module:
    x, y = rows()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - y).square().sum() / (2 * NOISE**2)
        if extra is not None:
            loss = loss + extra()
        else:
            loss = loss + sum(p.square().sum() for p in model.parameters()) / 2
        loss.backward()
        optimizer.step()
    return model.eval()


def deviations() -> dict[str, Tensor]:
    """The standard deviation of the function at the places, by each way."""
    x, y = rows()
    found: dict[str, Tensor] = {}
    found["ensemble"] = ensemble_outputs([train(network(seed)) for seed in range(8)], PLACES)[..., 0].std(0)
    base = train(network(0))
    for name, kind in (("last-layer Laplace", LastLayerLaplace), ("Kronecker Laplace", KroneckerLaplace)):
        fit = kind(base, likelihood="gaussian", strength=1.0, noise=NOISE**2).fit(x, y)
        found[name] = fit.predict(PLACES).covariance.flatten().sqrt()
    model = train(network(1, 0.1))
    found["Monte Carlo dropout"] = monte_carlo(model, PLACES, draws=200).spread.flatten()
    model = train(network(2), 800)
    swag = Swag(model, rank=20)
    for _ in range(30):
        train(model, 20, 0.05)
        swag.collect()
    generator, drawn = torch.Generator().manual_seed(0), []
    for _ in range(60):
        swag.draw(generator)
        drawn.append(model(PLACES).detach().flatten())
    found["SWAG"] = torch.stack(drawn).std(0)
    torch.manual_seed(3)
    bayes = nn.Sequential(VariationalLinear(1, 30, method="local"), nn.Tanh(), VariationalLinear(30, 1, method="local"))
    train(bayes, 2500, 0.01, lambda: divergence(bayes))
    found["variational layers"] = torch.stack([bayes(PLACES).detach().flatten() for _ in range(200)]).std(0)
    small = train(network(4, width=12), 500)
    posterior = NetworkPosterior(small, likelihood="gaussian", prior=1.0, noise=NOISE)
    drawn_ = posterior.fit(x, y, draws=300, warmup=300, leapfrogs=25).outputs(PLACES)[..., 0]
    found["Hamiltonian draws"] = drawn_.std(0)
    process = GaussianProcess(1.0 * RBF(0.5), NOISE**2).fit(x, y.flatten(), standardise=False)
    found["Gaussian process"] = process.predict(PLACES)[1].sqrt()
    return {name: value.double() for name, value in found.items()}


def lab() -> tuple[list[Claim], str, dict[str, str]]:
    found = deviations()
    table_rows = [
        (name, f"{float(s[INSIDE].mean()):.4f}", f"{float(s[GAP].mean()):.4f}", f"{float(s[BEYOND].mean()):.4f}")
        for name, s in found.items()
    ]
    # Dropout, SWAG and layers with independent weights promise nothing between rows (Foong et al., 2020): they are shown.
    promised = ("ensemble", "last-layer Laplace", "Kronecker Laplace", "Hamiltonian draws", "Gaussian process")
    claims = [
        above(
            f"{name}: deviation in the gap by that among rows",
            float(found[name][GAP].mean() / found[name][INSIDE].mean()),
            2.0,
        )
        for name in promised
    ]
    at = PLACES.flatten().tolist()
    shown = ("ensemble", "Kronecker Laplace", "Hamiltonian draws", "Gaussian process")
    picture = lines(
        {name: list(zip(at, found[name].tolist(), strict=True)) for name in shown},
        title="Deviation of the function; rows end at ±0.75 and ±1.75", x_label="x",
    )  # fmt: skip
    return claims, table(("method", "among rows", "in the gap", "beyond"), table_rows), {"deviation": picture}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed."""
    return run("bayesian_bands", __doc__, lab, given)


if __name__ == "__main__":
    sys.exit(main())
