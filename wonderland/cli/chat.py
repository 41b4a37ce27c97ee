"""chat: write with a language model in turns, in the terminal."""

import argparse
import sys
from contextlib import suppress

from wonderland.cli.generate import chosen, opened, printable, sampling, unknown_tokens

HELP = """\
What you type goes to the model, and it writes on from the whole conversation.
/reset            forget what was said
/temperature X    how daring it writes (0 is the likeliest text)
/count N          how many tokens an answer has at most
/help             this text
/quit             leave (so do Ctrl-D and Ctrl-C)"""


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to chat."""
    verb.add_argument("run_folder", metavar="RUN", help="the run folder of a language model")
    verb.add_argument(
        "--count", type=int, help="how many tokens an answer has at most (default 120, or half the positions)"
    )
    sampling(verb)
    verb.add_argument("--stop", metavar="TEXT", action="append", help="end an answer before this text; may be repeated")


def run(given: argparse.Namespace) -> int:
    """Read a line, write on, again and again."""
    writing = opened(given.run_folder, "chat")
    from wonderland.core import WonderlandError

    shown = sys.stdin.isatty()
    if shown:
        with suppress(ImportError):
            import readline  # noqa: F401 - arrow keys and history in input()
        print("Write something; /help tells more, Ctrl-D leaves.")
    count = given.count if given.count is not None else min(120, (writing.room(1) or 240) // 2 or 1)
    talk = Conversation(writing, count, {"temperature": writing.temperature} | chosen(given), given.stop or [])
    while True:
        try:
            line = input("> " if shown else "")
        except (EOFError, KeyboardInterrupt):
            print()
            return 0
        if not line.strip():
            continue
        if line.startswith("/"):
            answer = talk.command(line)
            if answer is None:
                return 0
            print(answer)
            continue
        try:
            prompt = talk.read(line)
        except WonderlandError as error:  # a line that cannot be read ends no conversation
            print(f"wonderland: {error}", file=sys.stderr)
            continue
        with suppress(KeyboardInterrupt):  # an answer that was cut stays in the conversation
            for text in talk.write(prompt):
                sys.stdout.write(printable(text))
                sys.stdout.flush()
        print()


class Conversation:
    """What was said so far, and how answers are written."""

    def __init__(self, writing, count: int, options: dict, stop: list[str]):
        self.writing, self.count, self.options, self.stop = writing, count, dict(options), stop
        self.said = ""

    def read(self, line: str) -> str:
        """What the model goes on from: the end of what was said, and a line more."""
        if told := unknown_tokens(self.writing, line):
            print(f"wonderland: {told}", file=sys.stderr)
        return self._left_context(f"{self.said}{line}\n")

    def write(self, prompt: str):
        """The model's next words, piece by piece; they join what was said."""
        self.said = prompt
        self.options["seed"] = self.options.get("seed", 0) + 1
        for text in self.writing.write(prompt, self.count, stop=self.stop, **self.options):
            self.said += text
            yield text
        self.said += "" if self.said.endswith("\n") else "\n"

    def command(self, line: str) -> str | None:
        """What a line that begins with / does; None leaves."""
        from wonderland.core import WonderlandError, nearest

        word, _, value = line[1:].strip().partition(" ")
        if word in ("quit", "exit", "q"):
            return None
        if word == "help":
            return HELP
        if word == "reset":
            self.said = ""
            return "Forgotten."
        try:
            if word == "temperature":
                heat = float(value)
                if not 0 <= heat < 100:
                    raise ValueError
                self.options["temperature"] = heat
                return f"Temperature {heat:g}."
            if word == "count":
                count = int(value)
                if count < 1:
                    raise ValueError
                self.count = min(count, self.writing.room(1) or count)
                if self.count < count:
                    return f"At most {self.count} tokens, as many as the model has positions."
                return f"At most {count} tokens."
        except ValueError:
            return f"/{word} takes a number, such as /{word} {'0.7' if word == 'temperature' else '100'}."
        known = ("help", "reset", "temperature", "count", "quit")
        return str(WonderlandError(f"There is no /{word}.{nearest(word, known)} /help tells what there is."))

    def _left_context(self, text: str) -> str:
        """The end of a conversation that fits a few times into what the model looks back at, and into its positions."""
        return self.writing.left_context(text[-8 * self.writing.encoder.context :], self.count)
