"""The tasks with their sizes, budgets and the numbers they state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch

from examples.proving_ground.adding import BASELINE, adding
from examples.proving_ground.copying import copying
from examples.proving_ground.copying import shorter_first as shorter_copies
from examples.proving_ground.examples import Examples
from examples.proving_ground.induction import induction
from examples.proving_ground.induction import shorter_first as shorter_rows
from examples.proving_ground.memory import memory
from examples.proving_ground.recall import beginnings_first, recall


@dataclass(frozen=True)
class Claim:
    """A number that the run must reach: the score of a mixer, at the training length or at another."""

    mixer: str
    number: float
    at: str = ""
    below: bool = False

    def holds(self, score: float) -> bool:
        return score < self.number if self.below else score >= self.number

    def words(self) -> str:
        return f"{self.mixer}{self.at and ' at ' + self.at} {'below' if self.below else 'at least'} {self.number:g}"


@dataclass(frozen=True)
class Task:
    """A generator with the sizes, the model and the budget it is used with.

    `vocab` 0 means that inputs are numbers, answered by one number per row and scored by the mean squared error, lower being
    better; tokens are scored by the share of right answers. Training stops when `solved` is reached twice in a row
    on examples apart from both training and test. `also` names further tests with other sizes; `only` names
    the mixers that take part when none are asked for; `ease` makes a batch easier, given how much of
    training is done, for the mixers in `eased`, or for all.
    """

    name: str
    make: Callable[..., Examples]
    sizes: Mapping[str, int]
    vocab: int
    train: int
    solved: float
    lr: float
    steps: int
    batch: int
    dim: int = 64
    depth: int = 2
    weight_decay: float = 0.01
    test: int = 1000
    also: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    only: tuple[str, ...] = ()
    ease: Callable[[Examples, float, torch.Generator], Examples] | None = None
    eased: tuple[str, ...] = ()
    note: str = ""

    @property
    def length(self) -> int:
        return self.make(0, 1, **self.sizes).inputs.shape[1]

    def reached(self, score: float) -> bool:
        return score >= self.solved if self.vocab else score <= self.solved

    def eases(self, mixer: str) -> bool:
        """Whether this mixer's training begins with easier batches."""
        return self.ease is not None and (not self.eased or mixer in self.eased)

    def stretched(self, length: int) -> "Task":
        """The task with another length, where it has one to choose."""
        name = {"adding": "length", "copy memory": "silence"}.get(self.name)
        return replace(self, sizes={**self.sizes, name: length}) if name else self

    def words(self) -> str:
        """The sizes and the budget in a sentence."""
        sizes = ", ".join(f"{name} {value}" for name, value in self.sizes.items())
        data = f"{self.train:,} training examples and {self.test:,} tests"
        budget = f"{self.depth} layers of width {self.dim}, batches of {self.batch}, at most {self.steps:,} steps"
        rate = f"learning rate {self.lr:g}, weight decay {self.weight_decay:g}"
        return f"{sizes}; {data}; {budget}, {rate}; solved {'from' if self.vocab else 'below'} {self.solved:g}. {self.note}"


TASKS = {
    task.name: task
    for task in (
        Task(
            "associative recall",
            recall,
            {"vocab": 256, "length": 64, "pairs": 4},
            vocab=256,
            train=10_000,
            solved=0.99,
            dim=128,
            lr=1e-3,
            weight_decay=0.1,
            steps=4000,
            batch=64,
            ease=beginnings_first,
            claims=(Claim("attention", 0.99),),
            only=("attention", "Mamba", "RWKV", "S4D", "GRU"),
            note="Training begins with shortened sequences.",
        ),
        Task(
            "selective copying",
            copying,
            {"vocab": 16, "length": 256, "words": 16},
            vocab=16,
            train=12_800,
            solved=0.97,
            lr=4e-3,
            steps=12_000,
            batch=32,
            ease=shorter_copies,
            claims=(Claim("Mamba", 0.95), Claim("S4D", 0.5, below=True)),
            only=("Mamba", "S4D"),
            note="Training begins with fewer words and blanks, cut from the same examples; in its last quarter sequences have full "
            "length, with their words at new random positions; tests have full length. At width 128 and learning rate 0.002, one "
            "run each, Mamba had 0.997 and S4D 0.533.",
        ),
        Task(
            "induction heads",
            induction,
            {"vocab": 16, "length": 64},
            vocab=16,
            train=20_000,
            solved=1.0,
            lr=2e-3,
            steps=4000,
            batch=32,
            ease=shorter_rows,
            eased=("attention", "attention, rotary"),
            note="Only attention begins with shorter sequences. They would help S4D too: in a trial of 1,500 steps it had 1.000 at "
            "the training length and 0.216 at x4. They harm Mamba, which then had 1.000, and 0.832 at x4.",
            also={"x4": {"length": 256}, "x16": {"length": 1024}},
            only=("attention", "Mamba", "S4D", "GRU"),
            claims=(
                Claim("Mamba", 0.99),
                Claim("Mamba", 0.99, at="x4"),
                Claim("Mamba", 0.99, at="x16"),
                Claim("attention", 0.9),
                Claim("attention", 0.5, at="x4", below=True),
            ),
        ),
        Task(
            "adding",
            adding,
            {"length": 100},
            vocab=0,
            train=10_000,
            solved=0.005,
            lr=3e-3,
            steps=1500,
            batch=32,
            claims=tuple(Claim(name, 0.01, below=True) for name in ("GRU", "LSTM", "Mamba", "convolution")),
            note=f"Always predicting 1 gives {BASELINE}.",
        ),
        Task(
            "copy memory",
            memory,
            {"symbols": 8, "held": 10, "silence": 100},
            vocab=10,
            train=10_000,
            solved=0.99,
            lr=3e-3,
            steps=1500,
            batch=32,
        ),
    )
}


def quick(task: Task) -> Task:
    """A tiny version of the task, a minute for all mixers; without claims."""
    return replace(task, dim=16, steps=4, batch=4, train=64, test=64, also={}, claims=())
