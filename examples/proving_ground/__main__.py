"""Run the proving ground: train mixers on the tasks, print one table, fail below a stated number."""

import argparse
import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import torch

from examples.proving_ground.contest import Result, compete, settings
from examples.proving_ground.mixers import entries
from examples.proving_ground.table import glance, lines, text, verdicts
from examples.proving_ground.tasks import TASKS, Task, quick
from wonderland.core import WonderlandError, nearest, write_text
from wonderland.core.memory import keep_freed_memory


def main(given: list[str] | None = None) -> int:
    """0 when every stated number that was tried is reached, 1 when one is missed, 2 when the options do not fit."""
    options = read(given)
    torch.set_num_threads(1)
    keep_freed_memory()
    try:
        tasks, mixers = chosen(options)
    except WonderlandError as error:
        print(error, file=sys.stderr)
        return 2
    kept, began, results = Path(options.kept), time.monotonic(), []
    known = {} if options.fresh else remembered(kept)
    for task in tasks:
        for mixer in mixers or (not options.all and not options.show and task.only) or entries(task.length):
            key = settings(task, mixer, options.seed)
            result = known.get(key)
            if result is None and options.show:
                continue
            if result is None:
                result = compete(task, mixer, options.seed, say)
                kept.parent.mkdir(parents=True, exist_ok=True)
                with kept.open("a") as file:
                    file.write(json.dumps({"key": key, "result": asdict(result)}) + "\n")
            say(f"{task.name}, {mixer}: score {result.scores['']:.4f} after {result.steps} steps")
            results.append(result)
    claims = verdicts(tasks, results)
    sentences = "\n".join(sentence for _, sentence in claims)
    print(
        f"\n{text(lines(tasks, results))}\n\n{glance(tasks, results)}\n\n{sentences}\n\n{time.monotonic() - began:.0f} seconds in all"
    )
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    write_text(options.out, page(tasks, results, claims, options))
    return 0 if all(met for met, _ in claims) else 1


def read(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.proving_ground", description=__doc__)
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help=f"of {', '.join(map(repr, TASKS))}")
    parser.add_argument("--mixers", nargs="+", metavar="MIXER", help=f"of {', '.join(map(repr, entries(4)))}")
    parser.add_argument(
        "--all",
        action="store_true",
        help="every mixer on every task, about four hours; otherwise the mixers of each task",
    )
    parser.add_argument("--steps", type=int, help="at most so many steps for each mixer and task")
    parser.add_argument(
        "--length", type=int, help="another length for adding (600), another silence for copy memory (1000)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--quick", action="store_true", help="small models and a few steps, to see that all runs; states nothing"
    )
    parser.add_argument("--show", action="store_true", help="train nothing: print the table of stored results")
    parser.add_argument("--fresh", action="store_true", help="train again what is stored")
    parser.add_argument("--out", default="runs/proving_ground.md", help="where the table goes")
    parser.add_argument("--kept", default="runs/proving_ground.jsonl", help="where results are kept for the next run")
    return parser.parse_args(given)


def chosen(options: argparse.Namespace) -> tuple[list[Task], list[str]]:
    """The selected tasks and mixers; without mixers, those of each task."""
    for name, names, known in (("task", options.tasks, list(TASKS)), ("mixer", options.mixers, list(entries(4)))):
        for one in names or ():
            if one not in known:
                raise WonderlandError(
                    f"There is no {name} {one!r}; there are {', '.join(map(repr, known))}.{nearest(one, known)}"
                )
    for name, given, least in (("steps", options.steps, 1), ("length", options.length, 2)):
        if given is not None and given < least:
            raise WonderlandError(f"--{name} is at least {least}, not {given}.")
    for name in ("kept", "out"):
        if Path(getattr(options, name)).is_dir():
            raise WonderlandError(f"--{name} names a file, and {getattr(options, name)} is a folder.")
    tasks = [TASKS[name] for name in options.tasks or TASKS]
    if options.length:
        tasks = [task.stretched(options.length) for task in tasks]
    if options.quick:
        tasks = [quick(task) for task in tasks]
    if options.steps:
        tasks = [replace(task, steps=options.steps) for task in tasks]
    return tasks, options.mixers or []


def remembered(path: Path) -> dict[str, Result]:
    """The results of earlier runs; an incomplete line is skipped."""
    results = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            entry = json.loads(line)
            results[entry["key"]] = Result(**entry["result"])
        except (ValueError, KeyError, TypeError):
            continue
    return results


def say(sentence: str) -> None:
    print(sentence, flush=True)


def page(tasks: list[Task], results: list[Result], claims: list[tuple[bool, str]], options: argparse.Namespace) -> str:
    """The table as a page of Markdown, with what it needs to be understood."""
    command = "python -m examples.proving_ground" + " --all" * options.all + " --show" * options.show
    sentences = (
        "\n".join(f"- {sentence}" for _, sentence in claims) or "- none of the mixers with a stated result was run"
    )
    about = "\n".join(f"- **{task.name}**: {task.words().strip()}" for task in tasks)
    return f"""# The proving ground

Printed by `{command}`. Results of earlier runs with the same settings are read from
`{options.kept}` instead of training again; with `--show`, missing results are left out. One seed ({options.seed}), one
run for each pair; one thread (`torch.set_num_threads(1)`), float32, torch {torch.__version__}.

Every mixer is tested in the same model: pre-norm blocks of the mixer and an MLP with expansion 2 (RWKV has its own channel
mixer), no dropout; AdamW, linear warmup and cosine schedule, gradients clipped to norm 1. Attention has one head and learned
positions added to the embedding, unless it is called rotary; linear attention and AFT have learned positions too, the others
none. The convolution has a short dense filter in the first layer and a depthwise one of the whole length in
the second; the gated convolution has two filters, the second dilated, whose joint receptive field is the whole sequence.

- score: accuracy at the queried positions of held-out examples; for adding, the mean squared error. Training stops when 200
  validation examples reach the task's threshold ("solved") in two consecutive of twenty evaluations (of the last ten where
  training begins with shorter sequences), or after the last step.
- seconds: processor time of training. batch MB: the tensors that one training batch keeps between forward and backward pass,
  counted by storage, without weights, gradients and optimizer state.
- state: numbers in the state of all layers after a sequence of the training length.
- Learning rates, steps and curricula were chosen on this seed for the mixers with a stated result; the others use the same
  settings without tuning. "Not solved" means: not within these steps, with these settings.

{about}

Scores; a star means solved:

{glance(tasks, results)}

Cost:

{text(lines(tasks, results))}

Stated results:

{sentences}
"""


if __name__ == "__main__":
    sys.exit(main())
