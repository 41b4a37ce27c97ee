"""evaluate: measure a run on data whose targets are known."""

import argparse
import json
import sys
from typing import Any

from wonderland.cli import flags
from wonderland.kinds.options import FileOptions


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of evaluate."""
    verb.add_argument("run_folder", metavar="RUN", help="a run folder")
    verb.add_argument("source", metavar="DATA", help="rows or images with their targets")
    verb.add_argument(
        "--label-shift",
        metavar="METHOD",
        help="correct probabilities for other shares of classes, estimated from the new rows: em or black-box",
    )
    verb.add_argument("--level", type=float, help="level of sets and intervals (default: the run's)")
    verb.add_argument(
        "--shots", type=int, metavar="N",
        help="for a model that writes: classify labelled texts by the likelihood of their labels after N examples in the prompt",
    )  # fmt: skip
    verb.add_argument("--target", metavar="COLUMN", help="with --shots: the column of labels")
    verb.add_argument("--seed", type=int, default=0, help="with --shots: draws the examples (default 0)")
    verb.add_argument("--json", action="store_true", help="print everything as JSON")
    group = verb.add_argument_group("how a table file is written")
    verb.set_defaults(names=flags.add(group, [FileOptions], skip=["strict"]))


def run(args: argparse.Namespace) -> int:
    """Evaluate and show the table of metrics."""
    from wonderland.core.precheck import precheck

    precheck(args.run_folder)  # refuses a hostile folder before torch is loaded
    from wonderland.cli import show
    from wonderland.ship import load

    run = load(args.run_folder)
    if args.shots is not None:
        return by_examples(run, args)
    measured = run.evaluate(
        args.source, level=args.level, label_shift=args.label_shift, **flags.chosen(args, args.names)
    )
    if args.json:
        print(json.dumps(measured, indent=2))
    else:
        show.print_findings(run.noticed)
        show.evaluation_table(f"{args.source}, {show.counted(measured['rows'], 'row')}", measured)
    return 0


def by_examples(run: Any, args: argparse.Namespace) -> int:
    """Few-shot evaluation of a language model, beside the same without examples."""
    from wonderland.cli import show
    from wonderland.core import WonderlandError
    from wonderland.data.reading import Reading
    from wonderland.data.source import Glimpse

    writing = run.ability("generate")
    if not callable(getattr(writing, "few_shot", None)):
        raise WonderlandError(
            f"The run in {args.run_folder} writes no labels after a prompt: --shots is for language models."
        )
    glimpse = Glimpse(args.source, reading=Reading.of(flags.chosen(args, args.names)))
    table = glimpse.text_table(args.target) or glimpse.text_table(args.target, any_label=True)
    if table is None or "," in table.target:
        raise WonderlandError(
            f"{args.source} holds no texts with one label each: name the column of labels with --target."
        )
    frame = table.frame.dropna(subset=[*table.texts, table.target])
    texts = frame[list(table.texts)].astype(str).agg("\n".join, axis=1).tolist()
    labels = frame[table.target].astype(str).tolist()
    counts = sorted({0, args.shots})
    bar = _counter if sys.stderr.isatty() and not args.json else None
    measured = {
        count: writing.few_shot(texts, labels, shots=count, held=args.shots, seed=args.seed, progress=bar)
        for count in counts
    }
    if args.json:
        print(
            json.dumps(
                {
                    str(count): {"rows": len(measured_shots.truth), **measured_shots.record()}
                    for count, measured_shots in measured.items()
                },
                indent=2,
            )
        )
        return 0
    show.say(table.sentence)
    last = measured[counts[-1]]
    rows = [
        {
            "examples": measured_shots.shots,
            **{name.replace("_", " "): value for name, value in measured_shots.record().items()},
        }
        for measured_shots in measured.values()
    ]
    show.table(f"{glimpse.name}: {show.counted(len(last.truth), 'text')}, {len(last.labels)} labels", rows)
    if last.shots < args.shots:
        show.say(f"Only {show.counted(last.shots, 'example')} of {args.shots} fit into the context of this model.")
    if last.cut:
        show.say(f"{show.counted(last.cut, 'text')} longer than the rest of the context: the end was read.")
    return 0


def _counter(done: int, total: int) -> None:
    """Progress in a terminal, on one line."""
    print(f"\r{done} of {total} texts", end="\n" if done == total else "", file=sys.stderr, flush=True)
