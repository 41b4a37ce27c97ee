"""One contest: train a mixer on a task within its budget, and measure score and cost."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from examples.proving_ground.examples import SILENT, Examples
from examples.proving_ground.mixers import entries
from examples.proving_ground.tasks import Task
from wonderland.core import mix
from wonderland.models.decoder import Decoder
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.stack import Stack
from wonderland.optim import groups, warmup_cosine

LOOKS = 20
EVERY = 5.0


@dataclass(frozen=True)
class Result:
    """The result of one mixer on one task: scores by test ("" for the training length), steps and processor seconds taken,
    memory that one batch holds for its backward pass, parameters, and numbers in the state after the task's length."""

    task: str
    mixer: str
    scores: dict[str, float]
    steps: int
    seconds: float
    megabytes: float
    parameters: int
    state: int


class Adder(nn.Module):
    """Numbers (b, t, features) to one number per row (b,): a stack between two linear maps, read at the last position."""

    def __init__(self, features: int, dim: int, depth: int, blocks: Any, position: Any):
        super().__init__()
        self.enter, self.leave = nn.Linear(features, dim), nn.Linear(dim, 1)
        self.position = None if position is None else position.build(dim=dim)
        self.stack = Stack(dim, depth, blocks)

    def forward(self, x: Tensor) -> Tensor:
        h = self.enter(x)
        if self.position is not None:
            h = h + self.position.embed(torch.arange(x.shape[1]).unsqueeze(0))
        return self.leave(self.stack(h)[:, -1]).squeeze(1)


def build(task: Task, mixer: str) -> Any:
    """The model, the same for all mixers."""
    entry = entries(task.length)[mixer]
    if task.vocab:
        shape = {"mixer": entry.mixer, "channel": entry.channel, "position": entry.position}
        return Decoder(task.vocab, task.dim, task.depth, **shape)
    blocks = [Block.spec(mixer=one, channel=entry.channel) for one in entry.mixer]
    return Adder(task.make(0, 1, **task.sizes).inputs.shape[2], task.dim, task.depth, blocks, entry.position)


def loss(model: Any, examples: Examples) -> Tensor:
    """Cross-entropy at the positions with targets, or the squared error."""
    if not isinstance(model, Decoder):
        return F.mse_loss(model(examples.inputs), examples.target)
    asked = examples.target != SILENT
    h = model.stack(model.embed(examples.inputs, None, None))
    return F.cross_entropy(model.logits(h[asked]), examples.target[asked])


@torch.no_grad()
def score(model: Any, examples: Examples, at_once: int = 64) -> float:
    """The accuracy at the positions with targets, or the mean squared error."""
    model.eval()
    total, right = 0, 0.0
    for rows in torch.arange(len(examples)).split(max(1, at_once)):
        part = examples.rows(rows)
        if isinstance(model, Decoder):
            asked = part.target != SILENT
            h = model.stack(model.embed(part.inputs, None, None))
            right += (model.logits(h[asked]).argmax(-1) == part.target[asked]).sum().item()
            total += int(asked.sum())
        else:
            right += (model(part.inputs) - part.target).square().sum().item()
            total += len(rows)
    model.train()
    return right / total


def compete(task: Task, mixer: str, seed: int, say: Callable[[str], None] = print) -> Result:
    """Train until solved or out of steps, then test on examples never seen."""
    torch.manual_seed(mix(seed, 0))
    model = build(task, mixer)
    train, watch = (task.make(mix(seed, part), rows, **task.sizes) for part, rows in ((1, task.train), (2, 200)))
    optimizer = torch.optim.AdamW(groups(model, weight_decay=task.weight_decay), lr=task.lr)
    eased = task.ease if task.eases(mixer) else None
    order = torch.Generator().manual_seed(mix(seed, 3))

    def step(number: int) -> float:
        for group in optimizer.param_groups:
            group["lr"] = task.lr * warmup_cosine(number, task.steps, floor=0.1)
        batch = train.rows(torch.randint(len(train), (task.batch,), generator=order))
        if eased:
            batch = eased(batch, number / task.steps, order)
        error = loss(model, batch)
        optimizer.zero_grad()
        error.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return error.item()

    began, spoke, taken, seen, solved = time.process_time(), time.monotonic(), 0, float("nan"), 0
    while taken < task.steps and solved < 2:
        error = step(taken)
        taken += 1
        if taken % max(1, task.steps // LOOKS) == 0:
            seen = score(model, watch)
            early = eased is not None and taken <= task.steps // 2
            solved = solved + 1 if task.reached(seen) and not early else 0
        if time.monotonic() - spoke > EVERY:
            spoke = time.monotonic()
            say(f"{task.name}, {mixer}: step {taken} of {task.steps}, loss {error:.3f}, score {seen:.3f}")
    seconds = time.process_time() - began
    scores = {"": score(model, task.make(mix(seed, 4), task.test, **task.sizes))}
    for name, sizes in task.also.items():
        scores[name] = score(model, task.make(mix(seed, 5), task.test // 4, **{**task.sizes, **sizes}), at_once=16)
    inner = model if task.vocab else model.stack
    return Result(
        task.name,
        mixer,
        scores,
        taken,
        seconds,
        kept_megabytes(model, train.rows(torch.arange(task.batch))),
        sum(parameter.numel() for parameter in model.parameters()),
        inner.state_numbers(task.length),
    )


def kept_megabytes(model: nn.Module, examples: Examples) -> float:
    """Megabytes that autograd saves for the backward pass of a batch, without the weights."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        # The result is kept alive until the count is done, so that no address is reused.
        held = loss(model, examples)
        total = sum(kept.values())
    del held
    return total / 2**20


def settings(task: Task, mixer: str, seed: int) -> str:
    """Everything that a result depends on, as one line, used as the key of stored results."""
    kept = {
        name: value
        for name, value in asdict(task).items()
        if name not in ("make", "ease", "eased", "claims", "only", "note")
    }
    entry = entries(task.length)[mixer]
    specs = [spec and spec.to_json() for spec in (*entry.mixer, entry.channel, entry.position)]
    return json.dumps([mixer, specs, seed, kept, task.eases(mixer)])
