"""Sets and intervals hold the truth as often as they say, on average over fifty splits of real data."""

import numpy as np
import pytest

import wonderland


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"), [("wine", {"steps": 150}), ("diabetes", {"steps": 150}), ("digits", {"epochs": 2})]
)
def test_coverage_over_fifty_splits(tmp_path, name, options):
    found = []
    for seed in range(50):
        run = wonderland.fit(name, out=tmp_path / str(seed), seed=seed, level=0.9, **options)
        found.append(run.record["measured"]["test"]["conformal"]["coverage"])
    print(name, "mean coverage", np.mean(found), "standard error", np.std(found) / np.sqrt(len(found)))
    assert abs(np.mean(found) - 0.9) < 0.02
