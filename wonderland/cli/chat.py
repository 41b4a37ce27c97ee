"""chat: talk with a language model in the terminal."""

import argparse
import sys
from contextlib import suppress

from wonderland.cli.generate import add_sampling_flags, load_ability, sampling_options, unknown_tokens
from wonderland.core.errors import printable

HELP = """\
What you type goes to the model, which continues the whole conversation.
/reset            clear the conversation
/temperature X    sampling temperature (0 takes the likeliest token)
/count N          largest number of tokens of an answer
/help             this text
/quit             leave (so do Ctrl-D and Ctrl-C)"""


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of chat."""
    verb.add_argument("run_folder", metavar="RUN", help="the run folder of a language model")
    verb.add_argument(
        "--count", type=int, help="largest number of tokens of an answer (default 120, or half the positions)"
    )
    add_sampling_flags(verb)
    verb.add_argument("--stop", metavar="TEXT", action="append", help="end an answer before this text; may be repeated")


def run(args: argparse.Namespace) -> int:
    """Read lines and print the model's answers, until the user leaves."""
    writing = load_ability(args.run_folder, "chat")
    from wonderland.core import WonderlandError

    interactive = sys.stdin.isatty()
    if interactive:
        with suppress(ImportError):
            import readline  # noqa: F401 - arrow keys and history in input()
        print("Write something; /help shows the commands, Ctrl-D leaves.")
    count = args.count if args.count is not None else min(120, (writing.room(1) or 240) // 2 or 1)
    conversation = Conversation(
        writing, count, {"temperature": writing.temperature} | sampling_options(args), args.stop or []
    )
    while True:
        try:
            line = input("> " if interactive else "")
        except (EOFError, KeyboardInterrupt):
            print()
            return 0
        if not line.strip():
            continue
        if line.startswith("/"):
            answer = conversation.command(line)
            if answer is None:
                return 0
            print(answer)
            continue
        try:
            prompt = conversation.read(line)
        except WonderlandError as error:  # a line that cannot be encoded does not end the conversation
            print(f"wonderland: {error}", file=sys.stderr)
            continue
        with suppress(KeyboardInterrupt):  # an interrupted answer stays in the conversation
            for text in conversation.write(prompt):
                sys.stdout.write(printable(text, "\n\t"))
                sys.stdout.flush()
        print()


class Conversation:
    """The text of the conversation so far, and the options for answers."""

    def __init__(self, writing, count: int, options: dict, stop: list[str]):
        self.writing, self.count, self.options, self.stop = writing, count, dict(options), stop
        self.text = ""

    def read(self, line: str) -> str:
        """The prompt for the model: the end of the conversation and a new line of the user."""
        if warning := unknown_tokens(self.writing, line):
            print(f"wonderland: {warning}", file=sys.stderr)
        return self._left_context(f"{self.text}{line}\n")

    def write(self, prompt: str):
        """Generate the answer, piece by piece, and add it to the conversation."""
        self.text = prompt
        self.options["seed"] = self.options.get("seed", 0) + 1
        for text in self.writing.write(prompt, self.count, stop=self.stop, **self.options):
            self.text += text
            yield text
        self.text += "" if self.text.endswith("\n") else "\n"

    def command(self, line: str) -> str | None:
        """Run a command, a line that begins with /; returns its output, or None to leave."""
        from wonderland.core import WonderlandError, nearest

        name, _, value = line[1:].strip().partition(" ")
        if name in ("quit", "exit", "q"):
            return None
        if name == "help":
            return HELP
        if name == "reset":
            self.text = ""
            return "The conversation is cleared."
        try:
            if name == "temperature":
                temperature = float(value)
                if not 0 <= temperature < 100:
                    raise ValueError
                self.options["temperature"] = temperature
                return f"Temperature {temperature:g}."
            if name == "count":
                count = int(value)
                if count < 1:
                    raise ValueError
                self.count = min(count, self.writing.room(1) or count)
                if self.count < count:
                    return f"At most {self.count} tokens, as many as the model has positions."
                return f"At most {count} tokens."
        except ValueError:
            return f"/{name} takes a number, such as /{name} {'0.7' if name == 'temperature' else '100'}."
        known = ("help", "reset", "temperature", "count", "quit")
        return str(WonderlandError(f"There is no /{name}.{nearest(name, known)} /help shows the commands."))

    def _left_context(self, text: str) -> str:
        """The end of the conversation that fits into the positions of the model."""
        return self.writing.left_context(text[-8 * self.writing.encoder.context :], self.count)
