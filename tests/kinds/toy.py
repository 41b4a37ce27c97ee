"""A toy kind, to prove that the contract is enough: lines of a label and eight numbers, in a file that ends in .toy."""

import hashlib
from pathlib import Path

import numpy as np
import torch
from torch import nn

from wonderland.core import Part, WonderlandError, part
from wonderland.data import Dataset, Field, RowEncoder
from wonderland.kinds.kind import Claim, Kind, simple_recipe


class Waves(Dataset):
    kind, task = "toy", "multiclass"

    def __init__(self, path):
        rows = [line.split(":") for line in Path(path).read_text().splitlines()]
        self.name, self.origin, self.findings = Path(path).name, {"path": str(Path(path).absolute())}, []
        self.classes = sorted({label for label, _ in rows})
        self.y = np.array([self.classes.index(label) for label, _ in rows])
        self.x = np.array([[float(value) for value in values.split()] for _, values in rows], np.float32)
        self.fingerprint = hashlib.sha256(self.x.tobytes() + self.y.tobytes()).hexdigest()

    def __len__(self):
        return len(self.y)

    def summary(self):
        return [{"class": label, "waves": int((self.y == code).sum())} for code, label in enumerate(self.classes)]

    def example(self, i):
        return {"wave": self.x[i].round(2).tolist(), "class": self.classes[self.y[i]]}


class WaveEncoder(RowEncoder):
    kind = "toy"

    def __init__(self, mean, classes):
        self.mean, self.classes, self.noticed = mean, classes, []

    def encode(self, dataset, rows=None):
        return torch.from_numpy(dataset.x if rows is None else dataset.x[rows]) - self.mean

    def open(self, source, *, need_target=False):
        return Waves(source)

    def schema(self):
        return [Field("wave", "series", shape=(8,))]

    def to_json(self):
        return {"kind": self.kind, "mean": self.mean, "classes": self.classes}


@part
class WaveNet(Part, nn.Module):
    """One linear layer."""

    def __init__(self, features: int, classes: int):
        super().__init__()
        self.layer = nn.Linear(features, classes)

    def forward(self, x):
        return self.layer(x)


class ToyKind(Kind):
    name = "toy"

    def claims(self, glimpse, asked):
        return Claim(0.9, "it ends in .toy") if glimpse.suffix == ".toy" else None

    def open(self, glimpse, options, test=None):
        return Waves(glimpse.path)

    def encoder(self, dataset, parts):
        return WaveEncoder(float(dataset.x[parts.train].mean()), dataset.classes)

    def read_encoder(self, saved, tensors):
        if not isinstance(saved.get("mean"), float) or not isinstance(saved.get("classes"), list):
            raise WonderlandError("The preprocessing of this model is not for waves.")
        return WaveEncoder(saved["mean"], saved["classes"])

    def recipe(self, dataset, parts, encoder, task):
        return simple_recipe(WaveNet.spec(features=8, classes=task.outputs), task, len(parts.train))
