"""docs/limits.md lists the limits of `wonderland.core.limits`, and no reader has one of its own.

python -m tests.house.test_limits    # writes docs/limits.md anew
"""

from pathlib import Path

from wonderland.core.limits import LIMITS, VARIABLE

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
HEAD = f"""# Limits

What Wonderland reads may come from anybody: data, run folders, checkpoints, tokenizers. So each reader checks sizes before it takes memory:
against the header of a file, its size on the disk, or a count while it reads. A refusal says what was seen and what is allowed. For data that you
trust, the environment variable `{VARIABLE}` raises limits by name:

    {VARIABLE}=table_bytes=16GiB,table_columns=50000 wonderland fit wide.csv

Sizes of models are bounded in another way: a model is built without memory first, and compared with the tensors that its file holds. Regular
expressions, schemas and specs written as text have bounds on the work they cause, which no variable raises.

| name | default | limits |
|---|---|---|
"""


def page() -> str:
    rows = [f"| `{name}` | {limit.amount(limit.most)} | {limit.meaning} |\n" for name, limit in LIMITS.items()]
    return HEAD + "".join(rows)


def test_the_page_of_limits_is_true():
    assert PAGE.read_text() == page(), "python -m tests.house.test_limits writes it anew"


if __name__ == "__main__":
    PAGE.write_text(page())
