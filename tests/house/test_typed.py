"""The options of `fit` for type checkers are those of the classes that own them.

python -m tests.house.test_typed    # writes wonderland/road/typed.py anew
"""

from pathlib import Path

from wonderland.core.options import described
from wonderland.kinds import KINDS
from wonderland.road.training import Training

FILE = Path(__file__).parents[2] / "wonderland" / "road" / "typed.py"
# A kind that somebody adds may leave its options to run time.
TYPED = (
    "table",
    "image",
    "text",
    "corpus",
    "pairs",
    "graph",
    "series",
    "sound",
    "signal",
    "clip",
    "environment",
    "ratings",
    "tags",
    "answers",
    "matches",
)
IN_THE_SIGNATURE = ("model", "test", "target")
ALSO = {"budget": ["str"], "start": ["Path"], "tokenizer": ["Path"], "optimizer": ["Any"], "schedule": ["Any"]}
TUPLE = "str | list[str] | tuple[str, ...]"


def written() -> str:
    """One line for each option, with its types."""
    types: dict[str, list[str]] = {"kind": ["str", "None"]}
    for owner in (Training, *(KINDS[name].Options for name in TYPED)):
        for name, option in described(owner).items():
            names = [TUPLE if kind is tuple else kind.__name__ for kind in option.types] + ALSO.get(name, [])
            known = types.setdefault(name, [])
            known += [each for each in [*names, "None"] if each not in known]
    return "".join(f"    {name}: {' | '.join(each)}\n" for name, each in types.items() if name not in IN_THE_SIGNATURE)


def test_the_options_of_fit_are_typed():
    assert FILE.read_text().endswith(f'"""\n\n{written()}'), "python -m tests.house.test_typed writes it anew"


if __name__ == "__main__":
    text = FILE.read_text()
    FILE.write_text(text[: text.rindex('"""') + 3] + "\n\n" + written())
