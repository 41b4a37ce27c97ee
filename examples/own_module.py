"""Your own module through `fit`: resume, calibration, conformal sets and a report, in fifteen lines."""

import torch
from torch import nn

import wonderland


class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x):
        return self.layers(x.float() / 255)


torch.manual_seed(0)
run = wonderland.fit(
    "digits", model=Mine(), out="runs/own-module", epochs=40, lr=0.01
)  # the same call resumes an interrupted run
print(run, run.folder / "report.html")
assert run.metrics["accuracy"] >= 0.95
