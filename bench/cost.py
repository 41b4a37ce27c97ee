"""Predicted time and memory of training beside what training takes: eight models of four kinds of data.

python -m bench.cost FOLDER [--only 0,3]    # a folder with airfoil_self_noise.dat, house_prices_train.csv, TREC.train.txt, timemachine.txt and MNIST's test images

Each prediction and each training runs in a process of its own, with one thread; seconds are those of the processor.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("table", "airfoil_self_noise.dat", {"steps": 400}),
    ("table", "house_prices_train.csv", {"model": "TableNet(dim=256, depth=4)", "steps": 400}),
    ("image", "mnist-t10k-images-idx3-ubyte.gz", {"model": "LeNet", "steps": 150}),
    ("image", "mnist-t10k-images-idx3-ubyte.gz", {"model": "ResNet(depths=[1,1], dims=[16,32])", "steps": 60}),
    ("text", "TREC.train.txt", {"model": "TextCNN", "steps": 150}),
    ("text", "TREC.train.txt", {"model": "BiRNN", "steps": 60}),
    ("corpus", "timemachine.txt", {"model": "Decoder(dim=64, depth=2)", "steps": 60}),
    ("corpus", "timemachine.txt", {"model": "RNNLM(dim=128)", "steps": 60}),
]


def predicted(source: str, options: dict[str, Any]) -> dict[str, float]:
    from wonderland.road.costing import cost_of

    sheet = cost_of(source, leaderboard="none", threads=1, **options)
    return {"seconds": float(sheet.training_seconds or 0), "bytes": sheet.step.peak_bytes}


def measured(source: str, options: dict[str, Any]) -> dict[str, float]:
    import torch

    from wonderland.core import write_json
    from wonderland.road.fitting import open_source, seeded
    from wonderland.road.plan import make_config, make_plan, resolve_measured
    from wonderland.road.request import Request
    from wonderland.road.stages import Stages
    from wonderland.understand.step_cost import clock, peak_bytes, reset_peak

    request = Request.of(leaderboard="none", threads=1, **options)
    with tempfile.TemporaryDirectory() as folder, seeded(request):
        kind, dataset = open_source(source, None, request, None, recorded=False)
        kind.remember(dataset, Path(folder), None)
        plan = make_plan(kind, dataset, request, None)
        torch.set_num_threads(1)
        resolve_measured(plan, request)
        config = make_config(plan, request, 1)
        write_json(Path(folder) / "config.json", config)
        stages = Stages(Path(folder), plan, config)
        reset_peak()
        began = clock()
        outcome = stages.train_to(plan.recipe.steps)
        return {"seconds": clock() - began, "bytes": peak_bytes(), "steps": outcome.rows[-1]["step"]}


def child(mode: str, number: int, folder: str) -> dict[str, float]:
    words = [sys.executable, "-m", "bench.cost", folder, "--child", mode, "--only", str(number)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--child")
    parser.add_argument("--only")
    args = parser.parse_args()
    chosen = range(len(CASES)) if args.only is None else [int(number) for number in args.only.split(",")]
    if args.child:
        _, name, options = CASES[chosen[0]]
        run = {"predicted": predicted, "measured": measured}[args.child]
        print(json.dumps(run(str(Path(args.folder) / name), options)))
        return
    print(f"{'':52}{'seconds':>18}{'':>7}{'MB':>14}")
    for number in chosen:
        kind, _, options = CASES[number]
        guess, real = child("predicted", number, args.folder), child("measured", number, args.folder)
        off = {key: guess[key] / real[key] - 1 for key in ("seconds", "bytes")}
        print(
            f"{kind:8}{options.get('model', 'the default'):40}{options['steps']:4} {guess['seconds']:8.2f} {real['seconds']:8.2f} "
            f"{off['seconds']:+6.0%} {guess['bytes'] / 1e6:6.0f} {real['bytes'] / 1e6:6.0f} {off['bytes']:+6.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
