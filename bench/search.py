"""Our Bayesian optimisation beside Optuna's TPE: ten standard functions, 50 trials each, mean ranks of the best scores.

pip install 'wonderland[bench]'; python -m bench.search [--trials 50] [--seeds 3]

Both sides see the same boxes. Random search is the third side. At the end: the time of one suggestion with 200 points.
"""

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Callable, Sequence

import numpy as np

from wonderland.search import BayesianOptimisation, Float, RandomSearch, Result, Space, Study, Trial, Tuner, work

Function = Callable[[Sequence[float]], float]


def branin(v):
    x, y = v
    return (
        (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
    )


def hartmann(alpha, a, p):
    alpha, a, p = map(np.array, (alpha, a, p))
    return lambda v: -float(alpha @ np.exp(-(a * (np.array(v) - 1e-4 * p) ** 2).sum(1)))


def ackley(v):
    v = np.array(v)
    return float(-20 * np.exp(-0.2 * np.sqrt((v**2).mean())) - np.exp(np.cos(2 * np.pi * v).mean()) + 20 + math.e)


def rosenbrock(v):
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in itertools.pairwise(v))


def levy(v):
    w = 1 + (np.array(v) - 1) / 4
    middle = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2)).sum()
    return float(np.sin(np.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2))


def griewank(v):
    v = np.array(v)
    return float((v**2).sum() / 4000 - np.prod(np.cos(v / np.sqrt(np.arange(1, len(v) + 1)))) + 1)


def styblinski(v):
    return 0.5 * sum(x**4 - 16 * x**2 + 5 * x for x in v)


def camel(v):
    x, y = v
    return (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (-4 + 4 * y**2) * y**2


def goldstein(v):
    x, y = v
    one = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2)
    return one * (30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2))


HARTMANN3 = hartmann(
    [1, 1.2, 3, 3.2],
    [[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]],
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]],
)
HARTMANN6 = hartmann(
    [1, 1.2, 3, 3.2],
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]],
    [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991], [2348, 1451, 3522, 2883, 3047, 6650],
     [4047, 8828, 8732, 5743, 1091, 381]],
)  # fmt: skip
FUNCTIONS: dict[str, tuple[Function, list[tuple[float, float]], list[float], float]] = {
    # the function, its box, where its minimum is, and the minimum
    "Branin": (branin, [(-5, 10), (0, 15)], [math.pi, 2.275], 0.397887),
    "Hartmann 3": (HARTMANN3, [(0, 1)] * 3, [0.114614, 0.555649, 0.852547], -3.86278),
    "Hartmann 6": (HARTMANN6, [(0, 1)] * 6, [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573], -3.32237),
    "Ackley 4": (ackley, [(-10, 15)] * 4, [0.0] * 4, 0.0),
    "Rosenbrock 3": (rosenbrock, [(-5, 10)] * 3, [1.0] * 3, 0.0),
    "Levy 4": (levy, [(-10, 10)] * 4, [1.0] * 4, 0.0),
    "Griewank 3": (griewank, [(-50, 70)] * 3, [0.0] * 3, 0.0),
    "Styblinski-Tang 3": (styblinski, [(-5, 5)] * 3, [-2.903534] * 3, -117.4985),
    "Six-hump camel": (camel, [(-3, 3), (-2, 2)], [0.0898, -0.7126], -1.0316),
    "Goldstein-Price": (goldstein, [(-2, 2)] * 2, [0.0, -1.0], 3.0),
}


def ours(tuner: Tuner, function: Function, box: list[tuple[float, float]], trials: int, seed: int) -> float:
    space = Space({f"x{i}": Float(float(low), float(high)) for i, (low, high) in enumerate(box)})
    with tempfile.TemporaryDirectory() as folder:
        study = Study.create(f"{folder}/study", space, tuner, trials=trials, seed=seed)
        work(study, lambda job: Result(function(list(job.settings.values()))))
        return study.best.score


def tpe(function: Function, box: list[tuple[float, float]], trials: int, seed: int) -> float:
    import optuna  # pyright: ignore[reportMissingImports]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(
        lambda t: function([t.suggest_float(f"x{i}", low, high) for i, (low, high) in enumerate(box)]), n_trials=trials
    )
    return study.best_value


def suggestion_seconds(points: int = 200, dim: int = 6) -> float:
    """CPU seconds of one suggestion after this many trials."""
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(dim)})
    trials = [Trial(n, s := space.sample(0, n), [HARTMANN6(list(s.values()))]) for n in range(points)]
    began = time.process_time()
    BayesianOptimisation().settings(space, trials, points, 0)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    for name, (function, _, place, least) in FUNCTIONS.items():
        assert abs(function(place) - least) < 1e-2, f"{name} is not what it should be"
    sides: dict[str, Callable[..., float]] = {
        "BO (ours)": lambda *a: ours(BayesianOptimisation(), *a),
        "TPE (Optuna)": tpe,
        "random": lambda *a: ours(RandomSearch(), *a),
    }
    ranks = dict.fromkeys(sides, 0.0)
    print(f"{'gap to the minimum, median':28}" + "".join(f"{side:>16}" for side in sides))
    for name, (function, box, _, least) in FUNCTIONS.items():
        gaps = {
            side: [run(function, box, args.trials, seed) - least for seed in range(args.seeds)]
            for side, run in sides.items()
        }
        for seed in range(args.seeds):
            order = sorted(sides, key=lambda side: gaps[side][seed])
            for rank, side in enumerate(order):
                ranks[side] += (rank + 1) / (args.seeds * len(FUNCTIONS))
        print(f"{name:28}" + "".join(f"{np.median(gaps[side]):16.4g}" for side in sides), flush=True)
    print(f"{'mean rank':28}" + "".join(f"{ranks[side]:16.2f}" for side in sides))
    print(f"one suggestion with 200 points in 6 dimensions: {suggestion_seconds():.2f} s of CPU")


if __name__ == "__main__":
    main()
