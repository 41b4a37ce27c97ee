"""Models that are fitted in one step: Gaussian processes and generalised linear models, through fit and the estimators."""

import numpy as np
import pandas as pd
import pytest
import torch

import wonderland
from tests import runs
from wonderland.core import WonderlandError
from wonderland.models import GLM, GaussianProcess
from wonderland.models.gaussian_process import read_kernel
from wonderland.models.rows import copies
from wonderland.probability.gaussian_process import RBF
from wonderland.probability.gaussian_process import GaussianProcess as Process
from wonderland.solvers import generalised_linear


def wave(rows, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.uniform(0, 6, rows)
    return pd.DataFrame({"x": x, "y": np.sin(2 * x) + 0.1 * draw.normal(size=rows)})


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    return wonderland.fit(wave(150), "y", out=tmp_path_factory.mktemp("gp") / "run", model="gp")


def test_a_process_is_fitted_stored_and_read(process):
    assert process.recipe.model.name == "models.GaussianProcess"
    assert process.recipe.steps == 1
    assert process.metrics["r2"] > 0.95
    new = pd.DataFrame({"x": [1.0, 3.0, 40.0]})
    table = process.predict(new)
    pd.testing.assert_frame_equal(table, wonderland.load(process.folder).predict(new))
    width = table["high"] - table["low"]
    assert width[2] > 3 * width[0]  # far from all rows the band is wide
    assert 0.7 <= process.record["measured"]["test"]["conformal"]["coverage"] <= 1


def test_the_report_draws_bands(process, tmp_path):
    page = (process.folder / "report.html").read_text()
    assert page.count("Band along x") == 1
    assert ">rows</text>" in page  # one input: its rows are drawn
    table = wave(60).assign(z=np.arange(60) % 7, town=["a", "b"] * 30)
    page = (wonderland.fit(table, "y", out=tmp_path / "run", model="gp").folder / "report.html").read_text()
    assert "Band along x" in page
    assert "Band along z" in page
    assert "The other columns are held at those of a typical row." in page


def test_an_interrupted_fit_resumes_to_the_same_bytes(process, tmp_path):
    wave(80).to_csv(tmp_path / "wave.csv", index=False)
    run = wonderland.fit(tmp_path / "wave.csv", "y", out=tmp_path / "run", model="gp")
    model = tmp_path / "run" / "model.safetensors"
    before = model.read_bytes()
    model.unlink()
    again = wonderland.fit(resume=tmp_path / "run")
    assert model.read_bytes() == before
    assert again.metrics == run.metrics


def test_the_posterior_is_that_of_the_library():
    draw = np.random.default_rng(0)
    x = torch.from_numpy(draw.normal(size=(40, 2)).astype(np.float32))
    y = torch.from_numpy(draw.normal(size=40))
    model = GaussianProcess(numbers=2, rows=40)
    model.fit_rows(x, y)
    own = Process(1.0 * RBF([2**0.5, 2**0.5]), 0.1).fit(x.double(), y, standardise=False)
    new = torch.from_numpy(draw.normal(size=(7, 2)).astype(np.float32))
    mean, variance = own.predict(new.double(), noise=True)
    torch.testing.assert_close(model(new)[:, 0].double(), mean, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(model.spread(new).square(), variance)


def test_many_rows_go_through_inducing_points():
    draw = np.random.default_rng(0)
    x = torch.from_numpy(draw.normal(size=(60, 1)).astype(np.float32))
    model = GaussianProcess(numbers=1, rows=60, exact=50, inducing=20)
    assert "60 rows through 20 inducing points" in model.describe()
    model.fit_rows(x, torch.sin(x[:, 0].double()))
    assert (model(x)[:, 0] - torch.sin(x[:, 0])).abs().max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("outputs", [2, 3])
def test_many_rows_of_classes_go_through_inducing_points(outputs):
    draw = np.random.default_rng(0)
    x = torch.from_numpy(draw.normal(size=(60, 1)).astype(np.float32))
    classes = GaussianProcess(numbers=1, outputs=outputs, rows=60, exact=50, inducing=20)
    y = torch.bucketize(x[:, 0], torch.tensor([0.0, 1.0][: outputs - 1]))
    classes.fit_rows(x, y)
    assert (classes(x).argmax(1) == y).float().mean() > 0.9


def test_classes_and_texts_of_kernels(tmp_path):
    run = wonderland.fit(
        runs.mixed(150), "risk", out=tmp_path / "run", model="GaussianProcess(kernel='matern32 + linear', ard=False)"
    )
    assert run.metrics["accuracy"] > 0.7
    table = run.predict(runs.mixed(20, seed=3))
    assert np.allclose(table["p(high)"] + table["p(low)"], 1, atol=1e-6)
    assert read_kernel("rbf * periodic + linear", 1, ard=False).names == (
        "constant", "length_scale", "length_scale", "period", "constant", "bias"
    )  # fmt: skip
    for text, message in {
        "rfb": r"There is no kernel 'rfb'\. Did you mean 'rbf'\? Known are rbf, matern",
        "+".join(["rbf"] * 11): "has at most 10 parts, not 11",
    }.items():
        with pytest.raises(WonderlandError, match=message):
            read_kernel(text, 2, ard=True)


def test_options_of_gradient_descent_are_refused(tmp_path):
    with pytest.raises(WonderlandError, match=r"models\.GaussianProcess is fitted in one step: leave epochs out"):
        wonderland.fit(wave(60), "y", out=tmp_path / "run", model="gp", epochs=3)
    with pytest.raises(WonderlandError, match="GaussianProcess has intervals of its own: leave conformal cqr out"):
        wonderland.fit(wave(60), "y", out=tmp_path / "run", model="gp", conformal="cqr")


def test_duplicate_rows_constant_columns_and_estimators():
    x = np.repeat(np.linspace(0, 3, 12), 3)
    X = np.stack([x, np.ones_like(x)], 1)
    found = wonderland.Regressor(model="gp").fit(X, np.sin(x))
    assert np.abs(found.predict(X) - np.sin(x)).max() < 0.2
    low, high = found.predict_interval(X).T
    assert (low <= high).all()
    labels = np.where(x > 1.5, "far", "near")
    assert (wonderland.Classifier(model="gp").fit(X, labels).predict(X) == labels).mean() > 0.9


def test_weights_are_copies():
    assert copies(torch.tensor([2.0, 4.0, 2.0])).tolist() == [1, 2, 1]
    assert copies(torch.tensor([0.5, 0.5])) is None
    with pytest.raises(WonderlandError, match="GaussianProcess takes weights that are whole numbers of copies"):
        copies(torch.tensor([1.0, 1.37]))


def test_counts_by_a_poisson_model(tmp_path):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(300, 2))
    table = pd.DataFrame(x, columns=["a", "b"]).assign(count=draw.poisson(np.exp(0.5 * x[:, 0] + 1)))
    run = wonderland.fit(table, "count", out=tmp_path / "run", model="GLM(family='poisson', ridge=0.0)")
    assert run.config["request"]["options"]["task"] == "regression"
    assert run.predict(table)["prediction"].min() > 0
    rows = run.encoder.encode(run.encoder.open(table)).double()[:, :2]
    expected = torch.as_tensor(
        run.task.original(run.task.standard(generalised_linear(rows, table["count"]).mean(rows).numpy()))
    )
    near = np.abs(run.predict(table)["prediction"] - expected.numpy()) / expected.numpy()
    assert near.max() < 0.25  # a fit of all rows is near to that of the training rows


@pytest.mark.parametrize("family", ["probit", "logit"])
def test_two_classes_by_a_linear_model(tmp_path, family):
    run = wonderland.fit(runs.mixed(150), "risk", out=tmp_path / "run", model=GLM.spec(family=family))
    assert run.metrics["auroc"] > 0.8
    pd.testing.assert_frame_equal(run.predict(runs.mixed(9)), wonderland.load(run.folder).predict(runs.mixed(9)))


def test_families_that_do_not_fit_are_refused():
    with pytest.raises(WonderlandError, match=r"GLM\(family='probit'\) predicts two classes, and here 3 classes are"):
        GLM(numbers=2, outputs=3, family="probit")
    with pytest.raises(WonderlandError, match="family"):
        GLM(numbers=2, family="tweedie")
    with pytest.raises(
        WonderlandError, match=r"GLM\(family='poisson'\) cannot be fitted: `y` holds -1: counts are 0 or more"
    ):
        GLM(numbers=1).fit_rows(torch.zeros(2, 1), torch.tensor([1.0, -1.0]))
