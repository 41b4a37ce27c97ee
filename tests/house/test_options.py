"""docs/options.md is the table of options as the classes that own them say it.

python -m tests.house.test_options    # writes docs/options.md anew
"""

from pathlib import Path

from tests.house.test_typed import TYPED
from wonderland.core.options import described
from wonderland.kinds import options_of
from wonderland.road.training import Training

PAGE = Path(__file__).parents[2] / "docs" / "options.md"
HEAD = """# Options of fit

Each option is owned by one class: that of a kind of data (`wonderland/kinds/KIND/options.py`) or that of training
(`wonderland/road/training.py`). The flags of the shell, the arguments of `wonderland.fit`, their checks and this page derive from it.
`wonderland fit --help KIND` shows the options of one kind.
"""


def table(owner: type) -> str:
    """One row for each option."""
    rows = ["| flag | in Python | default | what it does |", "|---|---|---|---|"]
    for name, option in described(owner).items():
        default = "" if option.default in (None, False, ()) else f"`{option.default}`"
        choices = f" One of {', '.join(option.choices)}." if option.choices else ""
        rows.append(f"| `{option.flag}` | `{name}` | {default} | {option.help}.{choices} |")
    return "\n".join(rows)


def page() -> str:
    sections = [f"## {name}\n\n{options_of(name).__doc__}\n\n{table(options_of(name))}\n" for name in TYPED]
    return "\n".join([HEAD, f"## Training\n\n{table(Training)}\n", *sections])


def test_the_page_of_options_is_true():
    assert PAGE.read_text() == page(), "python -m tests.house.test_options writes it anew"


if __name__ == "__main__":
    PAGE.write_text(page())
