"""The doctor reports each seeded problem at its location, and none in healthy models."""

import copy
import importlib
import random
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland import WonderlandError
from wonderland.models import Decoder
from wonderland.nn import Attention, Mamba
from wonderland.understand import Diagnosis, Finding, doctor

HERE = Path(__file__)


def kaiming(model):
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            nn.init.zeros_(module.bias)
    return model


def drawn(model, draw):
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            draw(module.weight)
            nn.init.zeros_(module.bias)
    return model


def mlp(width=64, depth=4, activation=nn.ReLU, inputs=20, outputs=10):
    layers, last = [], inputs
    for _ in range(depth):
        layers += [nn.Linear(last, width), activation()]
        last = width
    return nn.Sequential(*layers, nn.Linear(last, outputs))


def rows(count=32, classes=10):
    return torch.randn(count, 20), torch.randint(classes, (count,))


def images(count=16):
    return torch.randn(count, 3, 12, 12), torch.randint(10, (count,))


def tokens(model, vocab=17):
    drawn = torch.randint(vocab, (4, 17))
    return model, (drawn[:, :-1], drawn[:, 1:])


class Recurrent(nn.Module):
    def __init__(self, kind=nn.LSTM, width=32, **options):
        super().__init__()
        self.rnn = kind(8, width, batch_first=True, **options)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x):
        return F.relu(x + self.norms[1](self.second(F.relu(self.norms[0](self.first(x))))))


class Residual(nn.Module):
    def __init__(self, channels=8, depth=4):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.ModuleList(Block(channels) for _ in range(depth))
        self.head = nn.Linear(channels, 10)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


def cnn(channels=8):
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3), nn.BatchNorm2d(2 * channels), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * channels, 10),
    )  # fmt: skip


HEALTHY = {
    "mlp": lambda: (kaiming(mlp()), rows()),
    "mlp, wide": lambda: (kaiming(mlp(256, 3)), rows(64)),
    "mlp, narrow": lambda: (kaiming(mlp(16, 3)), rows(16)),
    "cnn": lambda: (cnn(), images()),
    "lstm": lambda: (Recurrent(), (torch.randn(16, 20, 8), torch.randint(4, (16,)))),
    "gpt": lambda: tokens(Decoder(vocab=17, dim=32, depth=3, mixer=Attention.spec(heads=4))),
    "mamba": lambda: tokens(Decoder(vocab=17, dim=32, depth=2, mixer=Mamba.spec())),
    "residual": lambda: (Residual(), images()),
}
OPTIMIZERS = [
    lambda p: torch.optim.Adam(p, lr=1e-3),
    lambda p: torch.optim.SGD(p, lr=0.1),
    lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_models_have_no_findings(name, seed):
    torch.manual_seed(seed)
    model, batch = HEALTHY[name]()
    diagnosis = doctor(model, batch, optimizer=OPTIMIZERS[seed](model.parameters()))
    assert diagnosis.healthy, str(diagnosis)
    assert not diagnosis.notes
    assert diagnosis
    assert len(diagnosis.layers) > 1


class Carry(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 16)
        self.head = nn.Linear(16, 4)
        self.hidden = None

    def forward(self, x):
        hidden = torch.zeros(len(x), 16) if self.hidden is None else self.hidden
        for t in range(x.shape[1]):
            hidden = self.cell(x[:, t], hidden)
        self.hidden = self.keep(hidden)
        return self.head(hidden)

    def keep(self, hidden):
        return hidden


class CarryDetached(Carry):
    def keep(self, hidden):
        return hidden.detach()


class Targets(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = mlp(32, 2, outputs=4)
        self.target = copy.deepcopy(self.online)

    def forward(self, x, later):
        return F.mse_loss(self.online(x)[:, 0], 1 + 0.9 * self.target(later).max(1).values)


class LogOfShares(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(20, 10)

    def forward(self, x):
        shares = F.relu(self.head(x))
        return torch.log(shares)  # the log


class Shares(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = kaiming(mlp())

    def forward(self, x):
        raised = (self.net(x) - self.net(x).amax(1, keepdim=True)).exp()
        return raised / raised.sum(1, keepdim=True)


class HandMade(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.head = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        scores = 20 * self.query(x) @ self.key(x).transpose(1, 2)
        raised = scores.exp()  # the exp
        return self.head((raised / raised.sum(-1, keepdim=True)) @ x).mean(1)


class Extra(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 32)
        self.extra = nn.Linear(32, 32)  # the extra
        self.last = nn.Linear(32, 10)

    def forward(self, x):
        return self.last(F.relu(self.first(x)))


class Loop(nn.Module):
    def __init__(self, gain=2.0, activation=torch.relu):
        super().__init__()
        self.inward, self.head = nn.Linear(8, 32), nn.Linear(32, 4)
        self.weight = nn.Parameter(gain * torch.randn(32, 32) / 32**0.5)
        self.activation = activation

    def forward(self, x):
        h = torch.zeros(len(x), 32)
        for t in range(x.shape[1]):
            h = self.activation(self.inward(x[:, t]) + h @ self.weight)  # the loop
        return self.head(h)


def frozen(model, path):
    model.get_submodule(path).requires_grad_(False)
    return model


def biased(model, path, value):
    nn.init.constant_(model.get_submodule(path).bias, value)
    return model


def scaled(model, path, factor):
    with torch.no_grad():
        model.get_submodule(path).weight.mul_(factor)
    return model


def sequences(t=30):
    return torch.randn(8, t, 8), torch.randint(4, (8,))


def counted_from_one(count):
    x, y = rows(count)
    y += 1
    y[:10] = torch.arange(1, 11)
    return x, y


def exploding(model):
    with torch.no_grad():
        model.rnn.weight_hh_l0.mul_(3.5)
    return model


# name: factory, problem, module path, the line's comment in this file (None: the line that calls the doctor)
PROBLEMS = {
    "sigmoid tower": (lambda: (mlp(64, 8, nn.Sigmoid), rows()), "vanishing gradients", "1", None),
    "sigmoid tower, Kaiming": (lambda: (kaiming(mlp(128, 8, nn.Sigmoid)), rows()), "vanishing gradients", "1", None),
    "large init": (lambda: (drawn(mlp(), lambda w: nn.init.normal_(w, std=1)), rows()), "exploding activations", None, None),
    "one large layer": (lambda: (scaled(kaiming(mlp()), "4", 100), rows()), "exploding activations", "4", None),
    "tiny init": (lambda: (drawn(mlp(), lambda w: nn.init.normal_(w, std=1e-3)), rows()), "vanishing activations", "0", None),
    "one tiny layer": (lambda: (scaled(mlp(), "4", 1e-3), rows()), "vanishing activations", "4", None),
    "zero init": (lambda: (drawn(mlp(), nn.init.zeros_), rows()), "symmetric initialisation", "0", None),
    "constant init": (lambda: (drawn(cnn(), lambda w: nn.init.constant_(w, 0.05)), images()), "symmetric initialisation", "0", None),
    "saturated": (lambda: (drawn(mlp(64, 4, nn.Tanh), lambda w: nn.init.normal_(w, std=1)), rows()), "saturated units", "3", None),
    "dead ReLUs": (lambda: (biased(kaiming(mlp()), "2", -20), rows()), "dead units", "3", None),
    "nearly dead ReLUs": (lambda: (biased(kaiming(mlp()), "2", -4), rows()), "dead units", "3", None),
    "missing detach": (lambda: (Carry(), sequences(5)), "missing detach", "", None),
    "learning target": (lambda: (Targets(), (torch.randn(32, 20), torch.randn(32, 20))), "missing detach", "target", None),
    "log of zero": (lambda: (LogOfShares(), rows(), F.nll_loss), "log of zero", "", "the log"),
    "half precision": (lambda: (HandMade().half(), (torch.randn(8, 6, 16).half(), torch.randint(4, (8,)))), "overflow in half precision", "", "the exp"),
    "unused": (lambda: (Extra(), rows()), "unused parameter", "extra", "the extra"),
    "exploding loop": (lambda: (Loop(), sequences()), "exploding recurrence", "", "the loop"),
    "exploding gradients": (lambda: (Loop(2.5, torch.tanh), (0.3 * torch.randn(8, 50, 8), torch.randint(4, (8,)))), "exploding recurrence", "", "the loop"),
    "exploding RNN": (lambda: (exploding(Recurrent(nn.RNN, nonlinearity="relu")), sequences(40)), "exploding recurrence", "rnn", None),
    "overflowing loop": (lambda: (Loop(9.0), sequences(50)), "exploding recurrence", "", "the loop"),
    "frozen": (lambda: (frozen(kaiming(mlp()), "4"), rows()), "frozen layer", "4", None),
    "frozen block": (lambda: (frozen(Residual(), "blocks.1"), images()), "frozen layer", "blocks.1", None),
    "sum": (lambda: (kaiming(mlp()), rows(), nn.CrossEntropyLoss(reduction="sum")), "loss summed over the batch", "", None),
    "own sum": (lambda: (cnn(), (images()[0], torch.randn(16, 10)), lambda o, y: ((o - y) ** 2).sum()), "loss summed over the batch", "", "own sum"),
    "labels from one": (lambda: (mlp(), counted_from_one(32)), "labels off by one", "", None),
    "labels from one, own loss": (lambda: (mlp(), counted_from_one(32), lambda o, y: -o.log_softmax(-1).gather(1, y[:, None]).mean()), "labels off by one", "", None),
    "softmax twice": (lambda: (nn.Sequential(kaiming(mlp()), nn.Softmax(1)), rows(), nn.CrossEntropyLoss()), "softmax before cross-entropy", "", None),
    "softmax by hand": (lambda: (Shares(), rows()), "softmax before cross-entropy", "", None),
    "sigmoid twice": (lambda: (nn.Sequential(kaiming(mlp(outputs=1)), nn.Sigmoid()), (torch.randn(32, 20), torch.randint(2, (32, 1)).float()), nn.BCEWithLogitsLoss()), "sigmoid before a loss that takes logits", "", None),
    "nll of scores": (lambda: (kaiming(mlp()), rows(), nn.NLLLoss()), "nll_loss of logits", "", None),
    "column against row": (lambda: (kaiming(mlp(outputs=1)), (torch.randn(32, 20), torch.randn(32)), nn.MSELoss()), "broadcast loss", "", None),
    "row against column": (lambda: (nn.Sequential(kaiming(mlp(outputs=1)), nn.Flatten(0)), (torch.randn(32, 20), torch.randn(32, 1)), lambda o, y: (o - y).abs().mean()), "broadcast loss", "", "row against"),
    "class 0 never": (lambda: (mlp(outputs=11), counted_from_one(128)), "shifted labels", "", None),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_are_reported_at_their_location(name, seed):
    torch.manual_seed(seed)
    make, problem, module, comment = PROBLEMS[name]
    diagnosis = doctor(*make())
    assert [finding.problem for finding in diagnosis.findings] == [problem], str(diagnosis)
    finding = diagnosis.findings[0]
    assert module is None or finding.module == module
    assert finding.line.startswith(str(HERE))
    if comment is not None:
        text = HERE.read_text().splitlines()[int(finding.line.rsplit(":", 1)[1]) - 1]
        assert comment in text
    assert finding.measured.endswith(".")
    assert finding.remedy.endswith(".")
    assert not diagnosis


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("rule", "lr"), [(torch.optim.SGD, 10.0), (torch.optim.Adam, 0.1)])
def test_a_learning_rate_a_hundred_times_too_large(rule, lr, seed):
    torch.manual_seed(seed)
    model, batch = kaiming(mlp()), rows()
    diagnosis = doctor(model, batch, optimizer=rule(model.parameters(), lr=lr))
    assert [finding.problem for finding in diagnosis.findings] == ["learning rate too large"], str(diagnosis)
    assert diagnosis.findings[0].number == lr
    assert doctor(model, batch, optimizer=rule, lr=lr / 100).healthy
    assert doctor(model, batch, lr=lr).findings[0].problem == "learning rate too large"


@pytest.mark.parametrize("name", ["cnn", "lstm", "gpt", "mamba", "residual"])
def test_a_learning_rate_that_replaces_the_weights_in_one_step_is_too_large(name):
    torch.manual_seed(0)
    model, batch = HEALTHY[name]()
    assert [finding.problem for finding in doctor(model, batch, lr=0.1).findings] == ["learning rate too large"]


def test_detached_state_frozen_first_layers_and_detached_teachers_are_healthy():
    torch.manual_seed(0)
    assert doctor(CarryDetached(), sequences(5)).healthy
    assert doctor(frozen(frozen(kaiming(mlp()), "0"), "2"), rows()).healthy
    student, teacher = kaiming(mlp()), kaiming(mlp())
    batch = rows()
    detached = lambda out, y: F.mse_loss(out, teacher(batch[0]).detach())  # noqa: E731
    undetached = lambda out, y: F.mse_loss(out, teacher(batch[0]))  # noqa: E731
    assert doctor(student, batch, detached).healthy
    assert [finding.problem for finding in doctor(student, batch, undetached).findings] == ["missing detach"]


def test_gradients_into_parameters_not_in_the_optimizer():
    torch.manual_seed(0)
    model = kaiming(mlp())
    diagnosis = doctor(model, rows(), optimizer=torch.optim.Adam([*model[0].parameters(), *model[4].parameters()]))
    assert [finding.problem for finding in diagnosis.findings] == ["optimizer lacks parameters"]
    assert "but the optimizer holds" in diagnosis.findings[0].measured


def test_cut_gradients_and_undetached_state_in_the_batch():
    class Rounded(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Linear(20, 16), nn.Linear(16, 10)

        def forward(self, x):
            return self.decoder(torch.round(self.encoder(x)))  # the cut

    torch.manual_seed(0)
    finding = doctor(Rounded(), rows()).findings[0]
    assert finding.problem == "cut gradient"
    assert "encoder.weight and 1 more (336 parameters)" in finding.measured
    assert "the cut" in HERE.read_text().splitlines()[int(finding.line.rsplit(":", 1)[1]) - 1]
    x, y = rows()
    live = x * torch.ones(1, requires_grad=True)
    assert [finding.problem for finding in doctor(kaiming(mlp()), (live, y)).findings] == ["missing detach"]


def test_indices_out_of_range_and_nonfinite_data_and_weights():
    torch.manual_seed(0)
    table = nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), nn.Linear(80, 2))
    finding = doctor(table, (torch.arange(1, 51).reshape(5, 10), torch.randint(2, (5,)))).findings[0]
    assert (finding.problem, finding.module, finding.number) == ("index out of range", "0", 50)
    x, y = rows()
    x[3, 2] = float("nan")
    finding = doctor(mlp(), (x, y)).findings[0]
    assert (finding.problem, finding.number) == ("non-finite data", 1)
    broken = mlp()
    broken[2].weight.data[0, 0] = float("inf")
    assert doctor(broken, rows()).findings[0].problem == "non-finite weights"


def test_nonfinite_gradient_of_a_finite_loss():
    class Chosen(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(20, 10)

        def forward(self, x):
            x = self.layer(x) * torch.tensor([0.0, 1.0] * 5)
            return torch.where(x > 0, x.abs().sqrt(), 0 * x)  # the root

    torch.manual_seed(0)
    finding = doctor(Chosen(), (torch.randn(8, 20), torch.randn(8, 10))).findings[0]
    assert finding.problem == "non-finite gradient"
    assert "the root" in HERE.read_text().splitlines()[int(finding.line.rsplit(":", 1)[1]) - 1]


def test_batches_and_losses_of_all_kinds():
    torch.manual_seed(0)

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = kaiming(mlp())

        def forward(self, features, labels=None):
            logits = self.net(features)
            return {"logits": logits, "loss": None if labels is None else F.cross_entropy(logits, labels)}

    x, y = rows()
    plain = kaiming(mlp())
    expected = F.cross_entropy(plain(x), y).item()
    model_loss = lambda model, batch: F.cross_entropy(model(batch[0]), batch[1])  # noqa: E731
    assert doctor(plain, (x, y)).loss == pytest.approx(expected)
    assert doctor(plain, {"x": x, "y": y}).loss == pytest.approx(expected)
    assert doctor(plain, (x, y), model_loss).loss == pytest.approx(expected)
    assert doctor(plain, [x, y], nn.CrossEntropyLoss()).loss == pytest.approx(expected)
    penalised = lambda out, y: F.cross_entropy(out, y) + 0.01 * sum(p.square().sum() for p in plain.parameters())  # noqa: E731
    assert doctor(plain, (x, y), penalised, lr=1e-3).healthy
    named = Named()
    assert doctor(named, {"features": x, "labels": y}).loss == pytest.approx(F.cross_entropy(named.net(x), y).item())
    assert doctor(named, (x, y)).loss == pytest.approx(F.cross_entropy(named.net(x), y).item())
    single = kaiming(mlp(outputs=1))
    assert doctor(single, (x, x[:, 0])).loss == pytest.approx(F.mse_loss(single(x)[:, 0], x[:, 0]).item(), rel=1e-5)
    bilinear = nn.Bilinear(20, 20, 10)
    expected = F.cross_entropy(bilinear(x, x), y).item()
    assert doctor(bilinear, ((x, x), y)).loss == pytest.approx(expected)
    assert doctor(bilinear, (x, x, y)).loss == pytest.approx(expected)
    assert doctor(bilinear, ({"input1": x, "input2": x}, y)).loss == pytest.approx(expected)
    coder = kaiming(mlp(outputs=20))
    assert doctor(coder, x, nn.MSELoss()).loss == pytest.approx(F.mse_loss(coder(x), x).item())


def test_model_optimizer_and_random_states_are_not_changed():
    torch.manual_seed(0)
    model, (x, y) = cnn(), images()
    model(x).sum().backward()
    model[0].eval()
    optimizer = torch.optim.Adam(model.parameters())
    state = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    modes = [module.training for module in model.modules()]
    draws = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    doctor(model, (x, y), optimizer=optimizer)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(
        torch.equal(parameter.grad, gradient) for parameter, gradient in zip(model.parameters(), gradients, strict=True)
    )
    assert [module.training for module in model.modules()] == modes
    assert not optimizer.state
    assert torch.equal(torch.get_rng_state(), draws[0])
    assert random.getstate() == draws[1]
    assert (np.random.get_state()[1] == draws[2]).all()  # noqa: NPY002
    carried = Carry()
    batch = sequences(5)
    carried(batch[0])
    before = carried.hidden
    assert doctor(carried, batch).findings[0].problem == "missing detach"
    assert carried.hidden is before


def test_text_html_and_table_of_a_diagnosis():
    finding = Finding(
        "dead units", "body.1", "/elsewhere/net.py:12", 0.97, "97% of 64 units are 0.", "Initialise <again>."
    )
    diagnosis = Diagnosis("Net", 2.5, [finding], notes=["the learning rate: give optimizer= or lr=."])
    assert str(diagnosis) == (
        "1 problem found in Net. Its loss is 2.5.\n"
        "1. dead units in body.1 (/elsewhere/net.py:12)\n"
        "  97% of 64 units are 0.\n"
        "  Remedy: Initialise <again>.\n"
        "Not checked: the learning rate: give optimizer= or lr=."
    )
    assert not diagnosis.healthy
    assert "<td>Initialise &lt;again&gt;.</td>" in diagnosis._repr_html_()
    assert str(Diagnosis("Net", 0.5, [])) == "No problem found in Net. Its loss is 0.5."
    torch.manual_seed(0)
    table = doctor(kaiming(mlp(16, 1)), rows()).table().splitlines()
    assert table[0].split() == ["module", "kind", "mean", "std", "zeros", "saturated", "gradient"]
    assert [line.split()[:2] for line in table[1:]] == [["0", "Linear"], ["1", "ReLU"], ["2", "Linear"]]


class Locked(nn.Module):
    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()
        self.layer = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: (3, None), "doctor takes a torch module, not a int."),
        (lambda: (nn.LazyLinear(3), torch.ones(2, 2)), "The model has lazy layers whose shapes are not known yet. Call it once on data first."),
        (lambda: (nn.ReLU(), torch.ones(2)), "ReLU has no trainable parameter, so there is nothing to check."),
        (lambda: (mlp(), torch.ones(2, 20)), "Sequential returned no loss, and the batch has no targets: give loss=, or a pair (inputs, targets)."),
        (lambda: (mlp(), ()), "The batch is empty: give a tensor, a pair (inputs, targets), or a dict of tensors."),
        (lambda: (mlp(), rows(), nn.CrossEntropyLoss(reduction="none")), "A loss is one number, and this one returned a tensor (32,): take its .mean()."),
        (lambda: (mlp(), rows(), 3), "A loss is a function or a module, not a int."),
        (lambda: (mlp(), (torch.ones(2, 20), "no")), "Targets are a tensor, not a str: give loss=."),
        (lambda: (mlp(), (torch.ones(2, 20), torch.ones(3))), "The output (2, 10) and the targets (3,) differ in size: give loss=."),
        (lambda: (mlp(), (torch.ones(2, 20), torch.ones(3, 4, 5).long())), "The output (2, 10) has no logits for the classes of targets (3, 4, 5): give loss=."),
        (lambda: (mlp(), rows(), None, 3), "optimizer is a torch optimizer or a function that makes one from parameters, not a int."),
        (lambda: (mlp(), rows(), None, lambda p: 3), "optimizer made a int, and the doctor needs a torch optimizer."),
        (lambda: (mlp(), (torch.ones(2, 3), torch.zeros(2).long())), "Sequential does not run on this batch (RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 20x64))."),
        (lambda: (mlp(), {"a": torch.ones(2), "b": torch.ones(2), "y": torch.ones(2)}), "Sequential does not run on this batch (TypeError: linear(): argument 'input' (position 1) must be Tensor, not dict)."),
        (lambda: (nn.Bilinear(2, 2, 2), {"a": torch.ones(2), "b": torch.ones(2)}), "The batch has 'a', 'b', and Bilinear.forward takes 'input1', 'input2': use the same names."),
        (lambda: (Locked(), torch.ones(2)), "Locked cannot be copied (TypeError: cannot pickle '_thread.lock' object), and the doctor works on a copy."),
    ],
)  # fmt: skip
def test_error_messages(arguments, message):
    model, batch, *rest = arguments()
    loss, optimizer = (*rest, None, None)[:2]
    with pytest.raises(WonderlandError) as error:
        doctor(model, batch, loss, optimizer=optimizer)
    assert str(error.value) == message


def test_too_few_steps():
    with pytest.raises(WonderlandError) as error:
        doctor(mlp(), rows(), lr=1.0, steps=1)
    assert str(error.value) == "The check of the learning rate needs at least 2 steps, not 1."


def test_the_example_of_the_guide_prints_its_output(tmp_path, monkeypatch, capsys):
    text = (HERE.parents[2] / "docs" / "doctor.md").read_text()
    code, shown = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.DOTALL).groups()
    (tmp_path / "tower.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("tower")
    monkeypatch.delitem(sys.modules, "tower")
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("more", "rows", "message"),
    [
        ({}, 0, "The batch has a tensor without rows: give at least one example."),
        (
            {"optimizer": torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)},
            4,
            "The optimizer has no parameter of this Linear: make it from model.parameters().",
        ),
    ],
)
def test_empty_batches_and_foreign_optimizers_are_refused(more, rows, message):
    with pytest.raises(WonderlandError, match=re.escape(message)):
        doctor(nn.Linear(3, 2), (torch.zeros(rows, 3), torch.zeros(rows, 2)), **more)
