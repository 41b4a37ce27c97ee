"""Forecasts by default fit beside exponential smoothing of statsmodels: rolling origins on a folder of series.

    python -m bench.forecasting FOLDER            # each CSV: a column of times, a column of values

Every series keeps its last part for the test: one season of the calendar ahead, from origins spread over the last fifth. The model is
fitted once, on what lies before the test; exponential smoothing (damped trend, season) is fitted again at every origin on all that lies
before it, which is more than the model is given. Needs statsmodels (the extra `bench`).
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import wonderland
from wonderland.kinds import KINDS

ORIGINS = 8


def rolling(path: Path) -> dict[str, float | str]:
    """Mean MASE over origins, of the model, of the season before and of exponential smoothing; and coverage of 90 % intervals."""
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run = wonderland.fit(str(path), out=Path(folder) / "run", kind="series", threads=1)
        spent = time.process_time() - began
        data = KINDS["series"].open(wonderland.data.Glimpse(str(path)), KINDS["series"].Options())
        examples = run.encoder.examples(data)
        cuts, horizon = run.encoder.geometry.cuts, run.encoder.geometry.horizon
        test = np.flatnonzero((examples.origins >= cuts[2]) & (examples.origins + horizon <= cuts[3]))
        chosen = test[np.linspace(0, len(test) - 1, min(ORIGINS, len(test))).astype(int)]
        metrics = run.metrics
        (_, batch, own, _, truth), *_ = run.task.walk(run.view(data), chosen)
        season, naive, values = data.layout.season, examples.naive[0, 0], data.tracks[0]
        from wonderland.models.series.forecaster import baseline

        mean, scale = batch["about"][:, None, 1:2].numpy(), batch["about"][:, None, 2:3].numpy()
        before = baseline(batch["x"].double(), horizon, season).numpy() * scale + mean
        filled = pd.Series(values.values[:, 0]).interpolate().to_numpy()
        smooth = np.stack(
            [smoothing(filled[: origin - values.start], horizon, season) for origin in examples.origins[chosen]]
        )
    error = {
        name: float(np.nanmean(np.abs(made - truth)) / naive)
        for name, made in (("own", own), ("season", before), ("ets", smooth[..., None]))
    }
    return {"series": path.stem, **error, "coverage": run.record["measured"]["test"]["conformal"]["coverage"], "all windows": metrics["mase"],
            "seconds": spent, "weights": " ".join(f"{n}:{w:.2f}" for n, w in zip(run.model.forecasts, run.model.shares[2].tolist(), strict=False) if w > 0)}  # fmt: skip


def smoothing(values: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """The forecast of statsmodels' exponential smoothing."""
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = values[-40 * season - 200 :]
        fitted = ETSModel(
            pd.Series(values),
            trend="add",
            damped_trend=True,
            seasonal="add" if season > 1 else None,
            seasonal_periods=season if season > 1 else None,
        ).fit(disp=False)
        return np.asarray(fitted.forecast(horizon))


if __name__ == "__main__":
    rows = []
    for path in sorted(Path(sys.argv[1]).glob("*.csv")):
        rows.append(rolling(path))
        print({name: round(v, 3) if isinstance(v, float) else v for name, v in rows[-1].items()}, flush=True)
    table = pd.DataFrame(rows)
    print(f"below the season before: {(table.own < table.season).sum()} of {len(table)}; below exponential smoothing: "
          f"{(table.own < table.ets).sum()}; mean coverage {table.coverage.mean():.3f}")  # fmt: skip
