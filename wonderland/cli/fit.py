"""fit: learn from data and leave a run that can be trusted."""

import argparse
import shlex
from typing import Any


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to fit."""
    verb.add_argument(
        "source", nargs="?", help="a table, a text, a folder of class folders, or a bundled set such as digits"
    )
    verb.add_argument("--out", metavar="DIR", help="run folder (default: a free one under runs/)")
    verb.add_argument("--resume", metavar="DIR", help="continue the run in this folder, exactly where it was cut")
    verb.add_argument("--overwrite", action="store_true", help="begin again in a folder that holds a run")
    learn = verb.add_argument_group("what to learn")
    learn.add_argument("--target", metavar="COLUMN", help="the column to learn (default: inferred)")
    learn.add_argument(
        "--task", choices=["binary", "multiclass", "regression", "language", "translation"], help="default: inferred"
    )
    learn.add_argument("--group", metavar="COLUMN", help="rows that share its value stay in one part of the split")
    learn.add_argument("--time", metavar="COLUMN", help="learn from the past, test on the future")
    learn.add_argument(
        "--keep", metavar="COLUMN", action="append", help="keep a column that looks like the target; may be repeated"
    )
    learn.add_argument("--drop", metavar="COLUMN", action="append", help="leave a column out; may be repeated")
    learn.add_argument("--strict", action="store_true", help="stop at faults in the data instead of repairing them")
    learn.add_argument("--size", type=int, metavar="PIXELS", help="side of the images (default: from the data)")
    words = verb.add_argument_group("text")
    words.add_argument(
        "--kind", choices=["table", "text", "corpus", "pairs"], help="what the data are (default: inferred)"
    )
    words.add_argument("--column", metavar="COLUMN", help="the column or field that holds the text")
    words.add_argument("--lines", action="store_true", help="each line of a text file is a document of its own")
    words.add_argument(
        "--tokens", choices=["characters", "words", "bpe", "wordpiece", "unigram"], help="default: by size"
    )
    words.add_argument("--vocab", type=int, help="how many tokens at most")
    words.add_argument(
        "--tokenizer", metavar="FILE", help="cut plain text with this tokenizer.json, or the one in this folder"
    )
    words.add_argument(
        "--from", dest="start", metavar="CHECKPOINT", help="go on from this folder of the transformers library"
    )
    words.add_argument(
        "--method",
        choices=["full", "head", "lora", "ia3", "bias"],
        help="what of a checkpoint learns (default full): everything, its head, or an adapter that is merged at the end",
    )
    words.add_argument("--context", type=int, metavar="TOKENS", help="how far a language model looks back")
    how = verb.add_argument_group("how to learn (the recipe chooses what is left out)")
    length = how.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=float, help="passes over the training rows")
    length.add_argument("--steps", type=int, help="updates of the weights")
    length.add_argument("--budget", metavar="TIME", help="time for training, such as 90s or 5m")
    how.add_argument("--lr", type=_rate, help="peak learning rate, or auto to find one")
    how.add_argument("--weight-decay", type=float, help="how strongly weights are drawn to zero")
    how.add_argument("--batch-size", type=int, help="rows in a step")
    how.add_argument("--clip", type=float, help="largest norm of the gradient")
    how.add_argument("--accumulate", type=int, help="pieces a batch is cut into, to save memory")
    how.add_argument("--precision", choices=["float32", "bfloat16"], help="numbers for computing (default float32)")
    how.add_argument("--patience", type=int, help="evaluations without progress before stopping")
    how.add_argument("--workers", type=int, help="processes that load images")
    how.add_argument("--threads", type=int, help="threads for computing")
    trust = verb.add_argument_group("trust and records")
    trust.add_argument(
        "--test", type=_share, default=0.2, help="share of rows kept for the test (default 0.2), or a file of test rows"
    )
    trust.add_argument(
        "--level", type=float, default=0.9, help="how often sets and intervals hold the truth (default 0.9)"
    )
    trust.add_argument("--seed", type=int, default=0, help="the same seed gives the same run (default 0)")
    trust.add_argument("--tensorboard", action="store_true", help="also write TensorBoard files")
    trust.add_argument("--quiet", action="store_true", help="say only what went wrong")


def _rate(text: str) -> float | str:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor auto") from None


def _share(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


ASKED = ("target", "task", "group", "time", "keep", "drop", "strict", "size", "epochs", "steps", "budget", "lr",
         "weight_decay", "batch_size", "clip", "accumulate", "precision", "patience", "workers", "threads", "test",
         "level", "seed", "kind", "column", "lines", "tokens", "vocab", "tokenizer", "context", "start", "method")  # fmt: skip


def run(found: argparse.Namespace) -> int:
    """Fit, showing the data before, progress during, and the metrics after."""
    from wonderland.cli import show
    from wonderland.road import fit
    from wonderland.train import Stopped

    given: dict[str, Any] = {name: getattr(found, name) for name in ASKED}
    if found.resume:
        defaults = {"test": 0.2, "level": 0.9, "seed": 0, "strict": False, "lines": False}
        given = {name: value for name, value in given.items() if value is not None and value != defaults.get(name)}
    talk = None if found.quiet else show.beginning
    try:
        result = fit(
            found.source,
            out=found.out,
            resume=found.resume,
            overwrite=found.overwrite,
            progress=not found.quiet,
            tensorboard=found.tensorboard,
            talk=talk,
            **given,
        )
    except Stopped as stop:
        raise Stopped(
            f"{stop} Continue with: wonderland fit --resume {shlex.quote(str(stop.folder))}", stop.signum, stop.folder
        ) from None
    if not found.quiet:
        show.ending(result)
    return 0
