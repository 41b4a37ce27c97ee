"""Trainings with known truth: each sick one gets its problem named, at its place, and no healthy one gets a finding."""

import copy
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland import WonderlandError
from wonderland.understand import doctor


def mlp(*sizes, act=nn.ReLU):
    layers = [layer for a, b in pairwise(sizes[:-1]) for layer in (nn.Linear(a, b), act())]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def rows(count=32, classes=5, width=20):
    return torch.randn(count, width), torch.randint(classes, (count,))


def real(count=32, outputs=1):
    return torch.randn(count, 20), torch.randn(count, outputs)


def images(count=8):
    return torch.randn(count, 3, 12, 12), torch.randint(5, (count,))


def text(shift=1):
    tokens = torch.randint(20, (4, 17))
    return tokens[:, :-1], tokens[:, shift : shift + 16]


def cnn(drop=0.0):
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(drop), nn.Linear(8, 5),
    )  # fmt: skip


class GPT(nn.Module):
    def __init__(self, causal=True, tied=False, dim=32):
        super().__init__()
        self.table, self.places = nn.Embedding(20, dim), nn.Parameter(0.02 * torch.randn(16, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 64, 0.1, batch_first=True, norm_first=True)
        self.body, self.norm = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.LayerNorm(dim)
        self.head, self.causal = nn.Linear(dim, 20, bias=False), causal
        nn.init.normal_(self.table.weight, std=0.1)
        if tied:
            self.head.weight = self.table.weight

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.causal else None
        return self.head(self.norm(self.body(self.table(x) + self.places[: x.shape[1]], mask=mask)))


class Hand(nn.Module):
    """A language model with hand-written attention."""

    def __init__(self, causal):
        super().__init__()
        self.table, self.qkv, self.head = nn.Embedding(20, 16), nn.Linear(16, 48), nn.Linear(16, 20)
        self.causal = causal

    def forward(self, x):
        x = self.table(x)
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / 4
        if self.causal:
            scores = scores + torch.full(scores.shape[1:], -1e9).triu(1)
        return self.head(x + scores.softmax(-1) @ v)


class ConvLM(nn.Module):
    def __init__(self, left):
        super().__init__()
        self.table, self.left = nn.Embedding(20, 16), left
        self.conv, self.head = nn.Conv1d(16, 16, 3, padding=0 if left else 1), nn.Linear(16, 20)

    def forward(self, x):
        x = self.table(x).transpose(1, 2)
        return self.head(F.relu(self.conv(F.pad(x, (2, 0)) if self.left else x)).transpose(1, 2))


class LSTM(nn.Module):
    def __init__(self, batch_first=True, bidirectional=False, vocab=None):
        super().__init__()
        self.table = None if vocab is None else nn.Embedding(vocab, 8)
        self.body = nn.LSTM(8, 16, batch_first=batch_first, bidirectional=bidirectional)
        self.head = nn.Linear(32 if bidirectional else 16, vocab or 4)

    def forward(self, x):
        out = self.body(x if self.table is None else self.table(x))[0]
        return self.head(out if self.table is not None else out[:, -1])


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = [nn.Linear(20, 20), nn.Linear(20, 20)], nn.Linear(20, 5)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.head(x)


class Step(nn.Module):
    """A net with a function of the hidden layer."""

    def __init__(self, function, last=lambda x: x, outputs=5):
        super().__init__()
        self.first, self.second, self.function, self.last = nn.Linear(20, 32), nn.Linear(32, outputs), function, last

    def forward(self, x):
        return self.last(self.second(self.function(self.first(x))))


class Players(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator, self.critic = mlp(8, 32, 20), mlp(20, 32, 1)


def generator_loss(model, batch):
    made = model.critic(model.generator(batch))
    return F.binary_cross_entropy_with_logits(made, torch.ones_like(made))


def critic_loss(detach):
    def loss(model, batch):
        made = model.generator(torch.randn(len(batch), 8))
        real, fake = model.critic(batch), model.critic(made.detach() if detach else made)
        return F.softplus(-real).mean() + F.softplus(fake).mean()

    return loss


def with_scale():
    x, y = rows()
    return x * torch.logspace(-2, 4, 20), y


def train(body, mode=None):
    """A step function from the names of its calls, in order."""

    def step(model, batch, optimizer):
        if mode is not None:
            model.train(mode)
        for name in body.split():
            if name == "zero":
                optimizer.zero_grad()
            elif name == "backward":
                F.cross_entropy(model(batch[0]), batch[1]).backward()
            elif name == "clip":
                nn.utils.clip_grad_norm_(model.parameters(), 1e-6)
            else:
                optimizer.step()

    return step


def frozen(model, count):
    for layer in list(model.children())[:count]:
        layer.requires_grad_(False).eval()
    return model


def filled(model, draw):
    for parameter in model.parameters():
        draw(parameter)
    return model


def decayed(model, last, taken):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: last if t == taken else 1.0)
    for _ in range(taken):
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        scheduler.step()
    return optimizer


def sgd(lr=0.05, **more):
    return lambda model: torch.optim.SGD(model.parameters(), lr, **more)


def adam(lr=1e-3, **more):
    return lambda model: torch.optim.Adam(model.parameters(), lr, **more)


CE = nn.CrossEntropyLoss()
GOOD = "zero backward step"


def token_loss(out, y):
    return F.cross_entropy(out.flatten(0, 1), y.flatten())


def one_hot_column():
    x, y = real(32)
    return torch.cat([x, y], 1), y


# name: (factory of (model, batch, loss, optimizer, step), problem, module)
SICK = {
    "features of different scale": (lambda: (mlp(20, 32, 5), with_scale(), None, adam()), "inputs of very different scale", "0"),
    "raw pixels": (lambda: (nn.Sequential(nn.Flatten(), mlp(432, 32, 5)), (255 * torch.rand(16, 3, 12, 12), torch.randint(5, (16,)))), "inputs not scaled", "1.0"),
    "house prices": (lambda: (mlp(20, 32, 1), (torch.randn(32, 20), 2e5 + 5e4 * torch.randn(32, 1)), nn.MSELoss(), adam()), "targets not scaled", ""),
    "equal examples": (lambda: (mlp(20, 32, 5), (torch.randn(1, 20).expand(16, 20).clone(), torch.randint(5, (16,)))), "constant inputs", ""),
    "target as a feature": (lambda: (mlp(21, 32, 1), one_hot_column(), nn.MSELoss()), "target among the inputs", ""),
    "optimizer of the head": (lambda: (mlp(20, 32, 32, 5), rows(), None, lambda m: torch.optim.Adam(m[-1].parameters())), "optimizer lacks parameters", "0"),
    "optimizer of the body": (lambda: (cnn(), images(), None, lambda m: torch.optim.SGD(m[:8].parameters(), 0.05)), "optimizer lacks parameters", "9"),
    "generator in the critic's step": (lambda: (Players(), torch.randn(16, 20), critic_loss(False), lambda m: torch.optim.Adam(m.critic.parameters())), "missing detach", "generator"),
    "softmax(0)": (lambda: (nn.Sequential(mlp(20, 32, 5), nn.Softmax(0)), rows(), lambda o, y: F.nll_loss((o + 1e-6).log(), y)), "softmax over the batch", "1"),
    "log_softmax(0)": (lambda: (mlp(20, 32, 5), rows(), lambda o, y: F.nll_loss(F.log_softmax(o, 0), y)), "log_softmax over the batch", ""),
    "normalize(0)": (lambda: (Step(lambda h: 5 * F.normalize(torch.relu(h), dim=0)), rows()), "a vector norm over the batch", ""),
    "time first": (lambda: (LSTM(batch_first=False), (torch.randn(16, 10, 8), torch.randint(4, (16,)))), "batch axis read as time", "body"),
    "tiny rate, Adam": (lambda: (mlp(20, 32, 5), rows(), None, adam(1e-8)), "learning rate too small", ""),
    "tiny rate, SGD": (lambda: (cnn(), images(), None, sgd(1e-7)), "learning rate too small", ""),
    "rate decayed to nothing": (lambda: (mlp(20, 32, 5), rows(), None, lambda m: decayed(m, 1e-8, 12)), "learning rate too small", ""),
    "large rate": (lambda: (mlp(20, 32, 32, 5), rows(), None, sgd(20.0)), "learning rate too large", ""),
    "decay, AdamW": (lambda: (mlp(20, 32, 5), rows(), None, lambda m: torch.optim.AdamW(m.parameters(), 1e-3, weight_decay=20.0)), "weight decay too large", ""),
    "decay, SGD": (lambda: (mlp(20, 32, 5), rows(), None, sgd(0.1, weight_decay=1.0)), "weight decay too large", ""),
    "unshifted GPT": (lambda: (GPT(), text(0), token_loss, adam()), "labels not shifted", ""),
    "unshifted LSTM": (lambda: (LSTM(vocab=20), text(0), token_loss), "labels not shifted", ""),
    "GPT without mask": (lambda: (GPT(causal=False), text(), token_loss), "future leak", "body.layers.0.self_attn"),
    "own attention without mask": (lambda: (Hand(False), text(), token_loss), "future leak", None),
    "convolution that sees ahead": (lambda: (ConvLM(False), text(), token_loss), "future leak", "conv"),
    "two directions": (lambda: (LSTM(bidirectional=True, vocab=20), text(), token_loss), "future leak", "body"),
    "eval, dropout": (lambda: (cnn(0.2).eval(), images()), "evaluation mode while training", ""),
    "eval in the step": (lambda: (cnn(0.2), images(), None, sgd(), train(GOOD, False)), "evaluation mode while training", ""),
    "never zeroed": (lambda: (mlp(20, 32, 5), rows(), None, sgd(), train("backward step")), "gradients never zeroed", ""),
    "zeroed too late": (lambda: (mlp(20, 32, 5), rows(), None, sgd(), train("backward zero step")), "gradients zeroed before the step", ""),
    "step before backward": (lambda: (mlp(20, 32, 5), rows(), None, sgd(), train("zero step backward")), "optimizer step before backward", ""),
    "no step": (lambda: (mlp(20, 32, 5), rows(), None, sgd(), train("zero backward")), "no optimizer step", ""),
    "tiny clip": (lambda: (mlp(20, 32, 5), rows(), None, sgd(), train("zero backward clip step")), "gradients clipped to almost nothing", ""),
    "layers in a list": (lambda: (Listed(), rows()), "parameters not registered", "layers"),
    "no activation": (lambda: (nn.Sequential(nn.Linear(20, 32), nn.Linear(32, 5)), rows()), "missing activation", "1"),
    "sigmoid, cross-entropy": (lambda: (nn.Sequential(mlp(20, 32, 5), nn.Sigmoid()), rows(), CE), "sigmoid before cross-entropy", ""),
    "relu, cross-entropy": (lambda: (nn.Sequential(mlp(20, 32, 5), nn.ReLU()), rows(), CE), "relu before cross-entropy", ""),
    "one class": (lambda: (mlp(20, 32, 1), (torch.randn(16, 20), torch.zeros(16).long()), CE), "softmax over one class", ""),
    "sigmoid autoencoder of normal data": (lambda: (nn.Sequential(mlp(20, 32, 20), nn.Sigmoid()), torch.randn(32, 20), nn.MSELoss()), "targets out of the output's range", "1"),
    "labels -1 and 1": (lambda: (mlp(20, 32, 1), (torch.randn(32, 20), torch.randn(32, 1).sign()), nn.BCEWithLogitsLoss()), "targets outside 0 to 1", ""),
    "logits in BCELoss": (lambda: (mlp(20, 32, 1), (torch.randn(32, 20), torch.ones(32, 1)), nn.BCELoss()), "logits in binary cross-entropy", ""),
    "float labels": (lambda: (mlp(20, 32, 5), (torch.randn(32, 20), torch.randint(5, (32,)).float()), CE), "labels as floats", ""),
    "dropout 0.99": (lambda: (nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.99), nn.Linear(64, 5)), rows()), "dropout too large", "2"),
    "batch norm of one": (lambda: (nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 5)), rows(1)), "batch norm with one example", "1"),
    "no_grad in the middle": (lambda: (Step(lambda h: torch.relu(h).detach()), rows()), "cut gradient", None),
    ".data in the middle": (lambda: (Step(lambda h: torch.relu(h).data), rows()), "cut gradient", None),
    "square root at 0": (lambda: (Step(lambda h: (h * (torch.arange(32) > 0)).abs().sqrt()), rows()), "non-finite gradient", None),
    "broadcast": (lambda: (mlp(20, 32, 1), (torch.randn(32, 20), torch.randn(32)), nn.MSELoss()), "broadcast loss", ""),
    "ones": (lambda: (filled(mlp(20, 32, 5), nn.init.ones_), rows()), "symmetric initialisation", "0"),
}  # fmt: skip


class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.down, self.up = nn.Linear(20, 20), nn.Linear(20, 2, bias=False), nn.Linear(2, 20, bias=False)
        self.base.requires_grad_(False)
        nn.init.zeros_(self.up.weight)
        self.head = nn.Linear(20, 5)

    def forward(self, x):
        return self.head(F.relu(self.base(x) + self.up(self.down(x))))


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.teacher = mlp(20, 32, 5), [mlp(20, 32, 5).requires_grad_(False)]

    def forward(self, x):
        return F.mse_loss(self.net(x), self.teacher[0](x))


def accumulate():
    count = 0

    def step(model, batch, optimizer):
        nonlocal count
        count += 1
        (F.cross_entropy(model(batch[0]), batch[1]) / 4).backward()
        if count % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

    return step


def warmup(model, start=1e-6):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: max(start, min(1.0, t / 100)))
    return optimizer


def clip(model, batch, optimizer):
    optimizer.zero_grad()
    F.cross_entropy(model(batch[0]), batch[1]).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


HEALTHY = {
    "mlp": lambda: (mlp(20, 64, 64, 5), rows(), None, adam(), train(GOOD)),
    "cnn, batch norm, dropout": lambda: (cnn(0.3), images(), None, sgd(0.05, momentum=0.9), clip),
    "bias before batch norm": lambda: (nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 5)), rows(), None, adam()),
    "batch norm of raw features": lambda: (nn.Sequential(nn.BatchNorm1d(20), mlp(20, 32, 5)), with_scale(), None, adam()),
    "gpt": lambda: (GPT(), text(), token_loss, adam()),
    "gpt, tied": lambda: (GPT(tied=True), text(), token_loss, adam()),
    "gpt that shifts in the loss": lambda: (GPT(), text(0), lambda o, y: token_loss(o[:, :-1], y[:, 1:]), adam()),
    "own attention with mask": lambda: (Hand(True), text(), token_loss, adam()),
    "causal convolution": lambda: (ConvLM(True), text(), token_loss, adam()),
    "masked tokens": lambda: (GPT(causal=False), (text()[0], torch.where(torch.rand(4, 16) < 0.3, torch.randint(20, (4, 16)), -100)), token_loss, adam()),
    "lstm": lambda: (LSTM(), (torch.randn(16, 10, 8), torch.randint(4, (16,))), None, adam(3e-3)),
    "lstm language model": lambda: (LSTM(vocab=20), text(), token_loss, adam()),
    "tagger, two directions": lambda: (LSTM(bidirectional=True, vocab=20), (text()[0], torch.randint(20, (4, 16))), token_loss, adam()),
    "autoencoder": lambda: (mlp(20, 32, 4, 32, 20), torch.randn(32, 20), nn.MSELoss(), adam()),
    "linear autoencoder": lambda: (nn.Sequential(nn.Linear(20, 4), nn.Linear(4, 20)), torch.randn(32, 20), nn.MSELoss(), adam()),
    "regression": lambda: (mlp(20, 32, 1), real(), nn.MSELoss(), adam()),
    "several labels": lambda: (mlp(20, 32, 6), (torch.randn(32, 20), torch.randint(2, (32, 6)).float()), nn.BCEWithLogitsLoss(), adam()),
    "generator's step": lambda: (Players(), torch.randn(16, 8), generator_loss, lambda m: torch.optim.Adam(m.generator.parameters())),
    "critic's step": lambda: (Players(), torch.randn(16, 20), critic_loss(True), lambda m: torch.optim.Adam(m.critic.parameters())),
    "frozen trunk in eval mode": lambda: (frozen(cnn(), 6), images(), None, lambda m: torch.optim.Adam(m[-1].parameters())),
    "frozen layers": lambda: (frozen(mlp(20, 32, 32, 5), 2), rows(), None, adam()),
    "adapter": lambda: (Adapter(), rows(), None, lambda m: torch.optim.AdamW([p for p in m.parameters() if p.requires_grad])),
    "teacher in a list": lambda: (Student(), torch.randn(32, 20), None, adam()),
    "gradient accumulation": lambda: (mlp(20, 32, 5), rows(), None, sgd(), accumulate()),
    "warmup": lambda: (mlp(20, 32, 5), rows(), None, warmup),
    "warmup from 0": lambda: (mlp(20, 32, 5), rows(), None, lambda m: warmup(m, 0.0)),
    "unused rows of a table": lambda: (nn.Sequential(nn.Embedding(1000, 8), nn.Flatten(), nn.Linear(128, 5)), (text()[0].repeat(8, 1), torch.randint(5, (32,))), None, adam()),
    "few positives": lambda: (mlp(20, 32, 2), (torch.randn(64, 20), (torch.arange(64) < 3).long()), None, adam()),
    "two losses": lambda: (mlp(20, 32, 6), rows(), lambda o, y: F.cross_entropy(o[:, :5], y) + 0.1 * o[:, 5].square().mean(), adam()),
    "logistic regression": lambda: (nn.Linear(20, 5), rows(), None, sgd(0.1, weight_decay=1e-4)),
    "fine-tuning rate": lambda: (GPT(), text(), token_loss, adam(2e-5)),
}  # fmt: skip


def examine(make):
    torch.manual_seed(0)
    model, batch, loss, optimizer, step = (*make(), None, None, None)[:5]
    return doctor(model, batch, loss, optimizer=None if optimizer is None else optimizer(model), step=step)


@pytest.mark.parametrize("name", SICK)
def test_sick_trainings_are_named(name):
    make, problem, module = SICK[name]
    diagnosis = examine(make)
    assert [finding.problem for finding in diagnosis.findings] == [problem], str(diagnosis)
    finding = diagnosis.findings[0]
    assert module is None or finding.module == module
    assert finding.line.startswith(__file__)
    assert finding.measured.endswith(".")
    assert finding.remedy.endswith(".")


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_trainings_have_no_findings(name):
    diagnosis = examine(HEALTHY[name])
    assert diagnosis.healthy, str(diagnosis)


def test_a_step_function_over_closures_works_on_copies():
    torch.manual_seed(0)
    model, batch = mlp(20, 32, 5), rows()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    before = copy.deepcopy(model.state_dict())

    def step():
        F.cross_entropy(model(batch[0]), batch[1]).backward()
        optimizer.step()

    diagnosis = doctor(model, batch, optimizer=optimizer, step=step)
    assert [finding.problem for finding in diagnosis.findings] == ["gradients never zeroed"]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("step", "optimizer", "message"),
    [
        (lambda model, batch, when: 0, True, "The step function has an argument 'when': it may take model, batch (or x and y), optimizer and loss by these names."),
        (lambda model: 0, False, "step= needs the optimizer that it uses: give optimizer= too."),
        (lambda model: model(3), True, "The step function fails (TypeError: linear(): argument 'input' (position 1) must be Tensor, not int)."),
    ],
)  # fmt: skip
def test_messages_about_step_functions(step, optimizer, message):
    model = mlp(20, 32, 5)
    with pytest.raises(WonderlandError) as error:
        doctor(model, rows(), optimizer=torch.optim.SGD(model.parameters(), 0.1) if optimizer else None, step=step)
    assert str(error.value) == message
