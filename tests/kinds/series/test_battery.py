"""Series through everything that a user does with a kind of data."""

import pandas as pd

from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from tests.kinds.series.made import hourly, monthly
from wonderland.train.forecasts import FitForecasts


class TestMonthly(Battery):
    kind = "series"
    options = {"horizon": 6}
    learner = FitForecasts

    def make(self, folder):
        table = monthly(108)
        table[:96].to_csv(folder / "sales.csv", index=False)
        table[96:].to_csv(folder / "later.csv", index=False)
        return folder / "sales.csv", folder / "later.csv"


class TestManySeriesAndColumns(Battery):
    kind = "series"
    options = {"target": "all", "time": "time", "horizon": 4, "series": "shop", "known": "holiday"}
    learner = FitForecasts

    def make(self, folder):
        shops = [hourly(150 + 20 * i, seed=i).assign(shop=f"shop {i}") for i in range(2)]
        pd.concat([table[:-12] for table in shops]).sample(frac=1, random_state=0).to_csv(
            folder / "shops.csv", index=False
        )
        pd.concat([table[-12:] for table in shops]).to_csv(folder / "later.csv", index=False)
        return folder / "shops.csv", folder / "later.csv"
