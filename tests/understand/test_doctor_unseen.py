"""The doctor on models that its thresholds were not set on: other depths, widths, kinds, batches and optimizers."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.understand import doctor

pytestmark = pytest.mark.slow


def mlp(inputs, width, depth, outputs, kind=nn.ReLU):
    layers, last = [], inputs
    for _ in range(depth):
        layers += [nn.Linear(last, width), kind()]
        last = width
    return nn.Sequential(*layers, nn.Linear(last, outputs))


class Shortcut(nn.Module):
    def __init__(self, before, after, stride=1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after),
        )  # fmt: skip
        plain = stride == 1 and before == after
        self.way = nn.Identity() if plain else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.way(x) + self.body(x))


def resnet(width=8, classes=10):
    stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
    blocks = Shortcut(width, width), Shortcut(width, 2 * width, 2), Shortcut(2 * width, 4 * width, 2)
    return nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, classes))


class Written(nn.Module):
    """A language model on a recurrent layer."""

    def __init__(self, kind, layers=1, vocab=40, dim=48):
        super().__init__()
        self.table, self.head = nn.Embedding(vocab, dim), nn.Linear(dim, vocab)
        self.body = kind(dim, dim, layers, batch_first=True)

    def forward(self, x):
        return self.head(self.body(self.table(x))[0]).transpose(1, 2)


class Causal(nn.Module):
    """A GPT of torch's own parts."""

    def __init__(self, vocab=40, dim=64, depth=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer(dim, 4, 4 * dim, batch_first=True, norm_first=True, activation="gelu")
        self.table, self.head = nn.Embedding(vocab, dim), nn.Linear(dim, vocab)
        self.places = nn.Parameter(0.02 * torch.randn(32, dim))
        self.body, self.norm = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), nn.LayerNorm(dim)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.norm(self.body(self.table(x) + self.places[: x.shape[1]], mask=mask))).transpose(1, 2)


class Patches(nn.Module):
    """A vision transformer."""

    def __init__(self, dim=48, norm_first=True):
        super().__init__()
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, batch_first=True, norm_first=norm_first)
        self.patch, self.token = nn.Conv2d(3, dim, 4, 4), nn.Parameter(torch.zeros(1, 1, dim))
        self.places = nn.Parameter(0.02 * torch.randn(1, 17, dim))
        self.body, self.head = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(dim, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.body(x)[:, 0])


class Graph(nn.Module):
    def __init__(self, nodes=30):
        super().__init__()
        edges = torch.rand(nodes, nodes) < 0.15
        edges = (edges | edges.t() | torch.eye(nodes, dtype=torch.bool)).float()
        self.register_buffer("edges", edges / edges.sum(1, keepdim=True))
        self.layers = nn.ModuleList([nn.Linear(12, 32), nn.Linear(32, 32), nn.Linear(32, 5)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(self.edges @ layer(x))
        return self.layers[-1](x)


def coder():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Sigmoid(),
    )  # fmt: skip


def rows(classes=5, count=40):
    return torch.randn(count, 20), torch.randint(classes, (count,))


def images(count=16, size=16):
    return torch.randn(count, 3, size, size), torch.randint(10, (count,))


def text():
    drawn = torch.randint(40, (8, 25))
    return drawn[:, :-1], drawn[:, 1:]


HEALTHY = {
    "resnet": lambda: (resnet(16), images(), None),
    "gpt": lambda: (Causal(), text(), nn.CrossEntropyLoss()),
    "lstm": lambda: (Written(nn.LSTM, 2), text(), nn.CrossEntropyLoss()),
    "gru": lambda: (Written(nn.GRU), text(), nn.CrossEntropyLoss()),
    "vit": lambda: (Patches(), images(), None),
    "vit, norms after": lambda: (Patches(norm_first=False), images(), None),
    "autoencoder": lambda: (coder(), torch.rand(16, 1, 16, 16), nn.MSELoss()),
    "autoencoder, entropy": lambda: (coder(), torch.rand(16, 1, 16, 16), nn.BCELoss()),
    "graph": lambda: (Graph(), (torch.randn(30, 12), torch.randint(5, (30,))), None),
    "gelu": lambda: (mlp(20, 128, 4, 3, nn.GELU), rows(3, 64), None),
    "tanh": lambda: (mlp(20, 64, 3, 3, nn.Tanh), rows(3, 64), None),
    "two sigmoids": lambda: (mlp(20, 64, 2, 3, nn.Sigmoid), rows(3, 64), None),
    "log softmax": lambda: (nn.Sequential(mlp(20, 32, 2, 5), nn.LogSoftmax(1)), rows(), nn.NLLLoss()),
    "regression": lambda: (mlp(20, 32, 2, 1), (torch.randn(64, 20), torch.randn(64, 1)), nn.MSELoss()),
    "two classes": lambda: (mlp(20, 32, 2, 1), (torch.randn(64, 20), torch.randint(2, (64, 1)).float()), nn.BCEWithLogitsLoss()),
    "linear": lambda: (nn.Linear(20, 4), rows(4), None),
}  # fmt: skip
OPTIMIZERS = [
    lambda p: torch.optim.Adam(p, 1e-3),
    lambda p: torch.optim.SGD(p, 0.05),
    lambda p: torch.optim.AdamW(p, 3e-4),
    lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
    lambda p: torch.optim.RMSprop(p, 1e-3),
]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_models_have_no_findings(name, seed):
    torch.manual_seed(seed)
    model, batch, loss = HEALTHY[name]()
    diagnosis = doctor(model, batch, loss, optimizer=OPTIMIZERS[seed](model.parameters()))
    assert diagnosis.healthy, str(diagnosis)


def scaled(model, factor):
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
            module.weight.data.mul_(factor)
    return model


def filled(model, value):
    for parameter in model.parameters():
        parameter.data.fill_(value)
    return model


def biased(model, index, value):
    model[index].bias.data.fill_(value)
    return model


def frozen(model, start):
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(start))
    return model


def convolutions(kind, depth=4):
    layers = [layer for _ in range(depth - 1) for layer in (nn.Conv2d(8, 8, 3, padding=1), kind())]
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), kind(), *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)
    )


class Cell(nn.Module):
    def __init__(self, gain, bend=torch.relu, width=16):
        super().__init__()
        self.inward, self.again, self.head = (
            nn.Linear(8, width),
            nn.Linear(width, width, bias=False),
            nn.Linear(width, 4),
        )
        nn.init.orthogonal_(self.again.weight, gain)
        self.bend = bend

    def forward(self, x):
        hidden = torch.zeros(len(x), self.again.in_features)
        for moment in x.unbind(1):
            hidden = self.bend(self.inward(moment) + self.again(hidden))
        return self.head(hidden)


class Gated(nn.Module):
    def __init__(self, kind, gain):
        super().__init__()
        self.body, self.head = kind(8, 32, batch_first=True), nn.Linear(32, 4)
        nn.init.normal_(self.body.weight_hh_l0, std=gain / 32**0.5)

    def forward(self, x):
        return self.head(self.body(x)[0][:, -1])


class Carried(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.state = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 4), None

    def forward(self, x):
        out, self.state = self.body(x, self.state)
        return self.head(out[:, -1])


class Bootstrap(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = mlp(6, 32, 2, 3)
        self.frozen_copy = copy.deepcopy(self.policy)

    def forward(self, state, later):
        return F.smooth_l1_loss(self.policy(state)[:, 0], 1 + 0.99 * self.frozen_copy(later).max(1).values)


class Players(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator, self.critic = mlp(8, 32, 2, 20), mlp(20, 32, 2, 1)


def judged(model, real):
    made = model.generator(torch.randn(len(real), 8))
    ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
    cost = F.binary_cross_entropy_with_logits
    return cost(model.critic(real), ones) + cost(model.critic(made), zeros)


class Raised(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(40, 6)

    def forward(self, x):
        raised = (50 * self.layer(x)).exp()
        return (raised / raised.sum(1, keepdim=True) + 1e-4).log()


class Logarithm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(20, 6)

    def forward(self, x):
        return torch.log(F.softmax(200 * self.layer(x), -1))


class Spare(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.temperature = mlp(20, 32, 2, 5), nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.body(x)


def sequences(length):
    return torch.randn(8, length, 8), torch.randint(4, (8,))


def counted(classes):
    x, y = rows(classes, 10 * classes)
    return x, torch.cat([torch.arange(1, classes + 1), y[classes:] + 1])


PROBLEMS = {
    "sigmoid tower, 5 x 64": (lambda: (mlp(20, 64, 5, 5, nn.Sigmoid), rows()), "vanishing gradients"),
    "sigmoid tower, 12 x 128": (lambda: (mlp(20, 128, 12, 5, nn.Sigmoid), rows()), "vanishing gradients"),
    "sigmoid tower, 20 x 10": (lambda: (mlp(20, 10, 20, 5, nn.Sigmoid), rows()), "vanishing gradients"),
    "sigmoid convolutions": (lambda: (convolutions(nn.Sigmoid, 8), images(8, 12)), "vanishing gradients"),
    "large init": (lambda: (scaled(mlp(20, 96, 4, 5), 5), rows()), "exploding activations"),
    "large convolutions": (lambda: (scaled(convolutions(nn.ReLU), 8), images(8, 12)), "exploding activations"),
    "tiny init": (lambda: (scaled(mlp(20, 64, 5, 5), 0.02), rows()), "vanishing activations"),
    "zero init": (lambda: (filled(mlp(20, 32, 3, 5), 0.0), rows()), "symmetric initialisation"),
    "constant init": (lambda: (filled(mlp(20, 32, 3, 5), 0.1), rows()), "symmetric initialisation"),
    "dead convolution": (lambda: (biased(convolutions(nn.ReLU), 2, -5.0), images(8, 12)), "dead units"),
    "dead layer": (lambda: (biased(mlp(20, 128, 3, 5), 2, -10.0), rows()), "dead units"),
    "dead first layer": (lambda: (biased(mlp(20, 48, 2, 5), 0, -6.0), rows()), "dead units"),
    "carried state": (lambda: (Carried(), sequences(6)), "missing detach"),
    "learning copy": (lambda: (Bootstrap(), (torch.randn(32, 6), torch.randn(32, 6))), "missing detach"),
    "half precision": (lambda: (Raised().half(), (torch.randn(16, 40).half(), torch.randint(6, (16,))), F.nll_loss), "overflow in half precision"),
    "log of softmax": (lambda: (Logarithm(), rows(6), F.nll_loss), "log of zero"),
    "spare parameter": (lambda: (Spare(), rows()), "unused parameter"),
    "growing cell": (lambda: (Cell(2.0), sequences(30)), "exploding recurrence"),
    "growing tanh cell": (lambda: (Cell(3.0, torch.tanh, 48), (0.2 * torch.randn(8, 60, 8), torch.randint(4, (8,)))), "exploding recurrence"),
    "growing GRU": (lambda: (Gated(nn.GRU, 12.0), sequences(60)), "exploding recurrence"),
    "growing LSTM": (lambda: (Gated(nn.LSTM, 12.0), sequences(60)), "exploding recurrence"),
    "frozen middle": (lambda: (frozen(mlp(20, 32, 4, 5), "4."), rows()), "frozen layer"),
    "frozen head": (lambda: (frozen(mlp(20, 32, 4, 5), "8."), rows()), "frozen layer"),
    "frozen block": (lambda: (frozen(resnet(), "2."), images(8)), "frozen layer"),
    "sum of squares": (lambda: (coder(), torch.rand(12, 1, 16, 16), nn.MSELoss(reduction="sum")), "loss summed over the batch"),
    "sum over tokens": (lambda: (Written(nn.GRU), text(), nn.CrossEntropyLoss(reduction="sum")), "loss summed over the batch"),
    "own sum": (lambda: (mlp(20, 32, 2, 3), (torch.randn(32, 20), torch.randn(32, 3)), lambda o, y: (o - y).abs().sum()), "loss summed over the batch"),
    "three classes from 1": (lambda: (mlp(20, 32, 2, 3), counted(3)), "labels off by one"),
    "hundred classes from 1": (lambda: (mlp(20, 32, 2, 100), counted(100)), "labels off by one"),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3, 6))
@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_are_reported_in_other_models(name, seed):
    torch.manual_seed(seed)
    make, problem = PROBLEMS[name]
    assert [finding.problem for finding in doctor(*make()).findings] == [problem]


@pytest.mark.parametrize("seed", range(2))
def test_a_critic_step_without_detach_of_the_generator(seed):
    torch.manual_seed(seed)
    model = Players()
    diagnosis = doctor(model, torch.randn(16, 20), judged, optimizer=torch.optim.Adam(model.critic.parameters(), 1e-3))
    assert [(finding.problem, finding.module) for finding in diagnosis.findings] == [("missing detach", "generator")]


RATES = {
    "sgd": (lambda: (mlp(20, 64, 3, 5), rows(), None), torch.optim.SGD, 10.0),
    "adam": (lambda: (mlp(20, 64, 3, 5), rows(), None), torch.optim.Adam, 0.1),
    "resnet, sgd": (lambda: (resnet(), images(8), None), torch.optim.SGD, 10.0),
    "resnet, adam": (lambda: (resnet(), images(8), None), torch.optim.Adam, 0.1),
    "gpt, adamw": (lambda: (Causal(), text(), nn.CrossEntropyLoss()), torch.optim.AdamW, 0.03),
    "lstm, sgd": (lambda: (Written(nn.LSTM), text(), nn.CrossEntropyLoss()), torch.optim.SGD, 100.0),
    "autoencoder, adam": (lambda: (coder(), torch.rand(16, 1, 16, 16), nn.MSELoss()), torch.optim.Adam, 0.1),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", RATES)
def test_a_learning_rate_a_hundred_times_too_large(name, seed):
    torch.manual_seed(seed)
    make, rule, rate = RATES[name]
    model, batch, loss = make()
    diagnosis = doctor(model, batch, loss, optimizer=rule(model.parameters(), lr=rate))
    assert [finding.problem for finding in diagnosis.findings] == ["learning rate too large"], str(diagnosis)
    assert doctor(model, batch, loss, optimizer=rule(model.parameters(), lr=rate / 100)).healthy
