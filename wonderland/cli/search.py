"""search: try models and settings of the recipe, and make the best a run."""

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wonderland.cli import flags

OWN = ("budget", "workers")  # options of fit that mean something else here


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of search, and those of fit, which all trials share."""
    from wonderland.kinds import NAMES, options_of
    from wonderland.road.training import Training

    verb.add_argument("source", nargs="?", help="a file, a folder, or a bundled set such as digits")
    verb.add_argument("--trials", type=int, default=20, help="points of the space to try (default 20)")
    verb.add_argument(
        "--tuner",
        default="random",
        help="random, grid, halving, asha, hyperband, bo or bohb (default random)",
        metavar="TUNER",
    )
    verb.add_argument("--space", metavar="FILE", help="space file in TOML (default: the space of the kind of data)")
    verb.add_argument("--workers", type=int, default=1, help="processes that run trials side by side (default 1)")
    verb.add_argument("--budget", metavar="TIME", help="begin nothing new after this time, such as 30m")
    verb.add_argument(
        "--study",
        metavar="STUDY",
        help="folder of the study (default: a free one under studies/), or a database: postgresql://user@host/database, sqlite:///FILE",
    )
    verb.add_argument("--resume", metavar="STUDY", help="go on with the study in this folder or database")
    verb.add_argument("--name", help="name of a study in a database (default: that of the data)")
    verb.add_argument(
        "--shared", metavar="FOLDER", help="folder that all machines see, for the weights of paused trials"
    )
    verb.add_argument("--warm-start", metavar="STUDY", help="try the best settings of this study first")
    verb.add_argument("--against", metavar="COST", help="a second objective: parameters or seconds")
    verb.add_argument(
        "--optuna", metavar="URL", help="also write the trials into this storage of Optuna, for its dashboard"
    )
    verb.add_argument(
        "--join", action="store_true", help="with --resume: run trials of a study as one more worker, and no more"
    )
    verb.add_argument("--eta", type=int, help="factor between rungs, for halving, asha, hyperband and bohb (default 3)")
    verb.add_argument("--rungs", type=int, help="number of rungs, for halving, asha, hyperband and bohb (default 3)")
    verb.add_argument(
        "--spend", type=float, help="for asha: share of whole trainings up to which paused trials go on (default 1/3)"
    )
    verb.add_argument("--points", type=int, help="values of each number, for grid (default 3)")
    verb.add_argument("--acquisition", help="ei or ucb, for bo (default ei)", metavar="NAME")
    verb.add_argument("--kind", help=f"kind of data (default: inferred): {', '.join(NAMES)}", metavar="KIND")
    verb.add_argument("--quiet", action="store_true", help="print errors only")
    names = flags.add(verb.add_argument_group("options of the data, as in fit"), map(options_of, NAMES), skip=OWN)
    names += flags.add(verb.add_argument_group("training, as in fit"), [Training], skip=[*names, *OWN])
    verb.set_defaults(names=names)


def run(args: argparse.Namespace) -> int:
    """Search, with a table of the trials, then finish the winner."""
    from wonderland.checkpoints.config_file import refuse_unknown_family

    if (start := vars(args).get("start")) is not None:
        refuse_unknown_family(start)
    from wonderland.cli import show
    from wonderland.core import WonderlandError
    from wonderland.road.searching import REPORT, WINNER, join, search
    from wonderland.search import make_tuner
    from wonderland.search.database import is_database
    from wonderland.train import Stopped

    asked: dict[str, Any] = flags.chosen(args, args.names)
    if not 1 <= args.workers <= 64:
        raise WonderlandError(f"--workers is a number from 1 to 64, not {args.workers}.")
    if args.join:
        if args.resume is None:
            raise WonderlandError("--join takes part in a study that was begun: name its folder with --resume.")
        join(args.resume, budget=args.budget, source=args.source, name=args.name, shared=args.shared)
        return 0
    tuned = {
        name: vars(args)[name]
        for name in ("eta", "rungs", "spend", "points", "acquisition")
        if vars(args)[name] is not None
    }
    extra = (args.study, args.space, args.warm_start, args.against, None if is_database(args.resume) else args.source)
    if args.resume is not None and (asked or tuned or any(value is not None for value in extra)):
        raise WonderlandError(
            "A study that goes on keeps the options it began with: give --resume and the folder only."
        )
    if args.kind is not None:
        asked["kind"] = args.kind
    table = None if args.quiet else Table()
    folder: list[Any] = []
    helpers: list[subprocess.Popen[bytes]] = []

    def on_study(study: Any) -> None:
        folder.append(study.folder)
        helpers.extend(_helpers(study, args))
        if table:
            table.start(study)

    def on_measured(result: Any) -> None:
        if table:
            table.stop()
            show.after_training(result)

    try:
        with _ended(helpers):
            result = search(
                args.source,
                study=args.study,
                resume=args.resume,
                trials=args.trials,
                tuner=make_tuner(args.tuner, tuned),
                space=args.space,
                budget=args.budget,
                name=args.name,
                shared=args.shared,
                warm_start=args.warm_start,
                against=args.against,
                optuna=args.optuna,
                progress=False,
                on_progress=table.update if table else None,
                on_study=on_study,
                on_measured=on_measured,
                **asked,
            )
    except Stopped as stop:
        again = f"wonderland search --resume {shlex.quote(str(folder[0]))}"
        if is_database(args.study or args.resume):
            again = "the same command."
        raise Stopped(f"Stopped; all trials are kept. Continue with: {again}", stop.signum, stop.folder) from None
    finally:
        if table:
            table.stop()
    if not args.quiet:
        place = result.study.folder
        show.say(f"\nTrial {result.best.number} of {len(result.study.trials)} won, by the validation part.")
        if result.run is None:
            show.say(
                f"Its weights are on another machine, which makes the run; the report of the study is {place / REPORT}"
            )
        else:
            show.say(f"The winner is the run {place / WINNER}; the report of the study is {place / REPORT}")
    return 0


def _helpers(study: Any, args: argparse.Namespace) -> Iterator[subprocess.Popen[bytes]]:
    """More workers, each a process of its own."""
    words = [sys.executable, "-m", "wonderland", "search", "--join", "--resume"]
    if study.journal.one_place:
        words.append(str(study.folder))
    else:
        words += [args.study or args.resume, "--name", study.journal.study]
        words += [] if args.source is None else [args.source]
        words += [] if args.shared is None else ["--shared", args.shared]
    for _ in range(args.workers - 1):
        yield subprocess.Popen(
            [*words, *([] if args.budget is None else ["--budget", args.budget])],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


@contextmanager
def _ended(helpers: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """End the other workers with this one; what they were at is in their checkpoints."""
    try:
        yield
    finally:
        for helper in helpers:
            helper.terminate()
        for helper in helpers:
            helper.wait()


class Table:
    """The trials: a table that is drawn anew in a terminal, a line for each measured rung elsewhere."""

    def __init__(self) -> None:
        self._live: Any = None
        self._said: set[tuple[int, int]] = set()

    def start(self, study: Any) -> None:
        """Begin to show a study."""
        from rich.live import Live

        from wonderland.cli import show

        names = ", ".join(study.space.names)
        show.say(f"Study in {study.journal.about}: {study.limit} trials over {names}.")
        for trial in study.trials:
            self._said |= {(trial.number, rung) for rung in range(trial.rung + 1)}
        if self._said:
            show.say(f"{len(study.trials)} trials were begun before: none of their work is done again.")
        if show.console.is_terminal:
            follower = study.follow()  # of its own, since the display reads it in another thread
            self._live = Live(
                console=show.console, get_renderable=lambda: trial_table(follower), refresh_per_second=2, transient=True
            )
            self._live.start()

    def update(self, study: Any) -> None:
        """Say what is new."""
        from wonderland.cli import show

        if self._live is not None:
            return
        for trial in study.trials:
            at = (trial.number, len(trial.scores))
            if trial.failed is not None and at not in self._said:
                self._said.add(at)
                show.say(f"trial {trial.number}: failed: {trial.failed}")
            for rung, score in enumerate(trial.scores):
                if (trial.number, rung) not in self._said:
                    self._said.add((trial.number, rung))
                    show.say(
                        f"trial {trial.number}: {score:.5g} after {trial.steps[rung]:,} steps ({settings_text(trial)})"
                    )

    def stop(self) -> None:
        """End the display."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def settings_text(trial: Any) -> str:
    """The settings of a trial in a line."""
    from wonderland.search.charts import describe

    return describe(trial.settings)


def trial_table(study: Any, rows: int = 12) -> Any:
    """The best trials and those that run, as a table of rich."""
    from rich.table import Table as Grid

    from wonderland.cli.show import printable_cell

    study.refresh()
    running = [trial for trial in study.trials if trial.running is not None]
    done = sorted(
        (t for t in study.trials if t.running is None and t.scores), key=lambda t: (-t.rung, t.score, t.number)
    )
    grid = Grid(title=f"{len(study.trials)} of {study.limit} trials begun, {len(running)} running", header_style="bold")
    for name in ("trial", "state", "score", "steps", "settings"):
        grid.add_column(name, justify="left" if name in ("state", "settings") else "right", overflow="fold")
    for trial in [*running, *done[: max(1, rows - len(running))]]:
        score = None if not trial.scores else trial.scores[-1]
        cells = [trial.number, trial.state, score, trial.steps[-1] if trial.steps else None, settings_text(trial)]
        grid.add_row(*map(printable_cell, cells))
    return grid
