"""What every kind of data goes through: open, inspect, fit, cut and resume, predict, evaluate, report, shell, damaged folders."""

import contextlib
import hashlib
import json
import random
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

import wonderland
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.core.limits import LIMITS, VARIABLE
from wonderland.core.options import described
from wonderland.data import Glimpse
from wonderland.kinds import KINDS
from wonderland.kinds.choose import choose
from wonderland.road.facts import refit_command
from wonderland.train import learner
from wonderland.train.checkpoint import Checkpoints

STEPS = 6
FILES = ("config.json", "metrics.jsonl", "model.safetensors", "preprocess.json", "preprocess.safetensors", "trust.json",
         "report.html")  # fmt: skip


@pytest.fixture(scope="class")
def home(request, tmp_path_factory):
    return tmp_path_factory.mktemp(request.cls.kind)


@pytest.fixture(scope="class")
def data(request, home):
    return request.cls().make(home)


@pytest.fixture(scope="class")
def run(request, home, data):
    return request.cls().fit(data[0], home / "run")


class Cut(BaseException):
    """Ends a training in the middle, as a kill would."""


class Battery:
    """Subclass it as `class TestTable(Battery)`, name the kind, and say in `make` what its data are."""

    kind: str
    bounded = True  # False where a source has no size: text that is read as a stream, environments
    options: dict[str, Any] = {}
    learner: Any = learner.GradientDescent

    def make(self, folder: Path) -> tuple[Any, Any]:
        """A source to learn from, and new data with answers to predict and evaluate, written into a folder."""
        raise NotImplementedError

    def fit(self, source: Any, out: Path, **options: Any) -> wonderland.Run:
        return wonderland.fit(source, out=out, steps=STEPS, threads=1, **self.options, **options)

    def test_it_is_chosen_and_opens_the_same_twice(self, data):
        assert choose(Glimpse(data[0]), None, self.options, KINDS).name == self.kind
        first, second = (wonderland.kinds.open(data[0], **self.options) for _ in range(2))
        assert first.fingerprint == second.fingerprint != ""
        assert len(first) > 0
        assert first.summary()
        assert first.headline()
        assert first.name in repr(first)
        assert "<table>" in first._repr_html_()
        assert first.example(0)

    def test_its_reader_keeps_the_limits(self, data, monkeypatch):
        """With all limits at 1, a file is refused by the name of a limit, which a reader has to ask before it reads."""
        if not isinstance(data[0], str | Path) or not self.bounded:
            return
        monkeypatch.setenv(VARIABLE, ",".join(f"{name}=1" for name in LIMITS))
        options = {name: value for name, value in self.options.items() if name != "kind"}
        with pytest.raises(WonderlandError, match=VARIABLE):
            wonderland.kinds.open(data[0], kind=self.kind, **options)

    def test_every_option_says_what_it_does(self):
        for option in described(KINDS[self.kind].Options).values():
            assert option.help
            assert option.flag.startswith("--")

    def test_an_unknown_option_is_refused(self, data):
        with pytest.raises(WonderlandError, match="fit has no option 'colour'"):
            wonderland.fit(data[0], colour="red")

    def test_a_run_is_whole(self, run):
        for name in FILES:
            assert (run.folder / name).stat().st_size
        assert run.config["source"]["kind"] == self.kind
        assert run.metrics
        assert run.encoder.schema()
        assert isinstance(run.encoder.digest(), str)
        page = (run.folder / "report.html").read_text()
        assert page.startswith("<!doctype html>")
        assert 'id="data"' in page
        assert 'id="repeat"' in page

    def test_the_same_again_is_equal_to_the_byte(self, home, data, run):
        second = self.fit(data[0], home / "again")
        for name in FILES:
            assert digest(run.folder / name) == digest(second.folder / name), name

    def test_a_cut_run_goes_on_to_the_same_bytes(self, home, data, run, monkeypatch):
        steps = {"left": 4}
        plain = self.learner.step

        def cut(self, state, batch):
            steps["left"] -= 1
            if not steps["left"]:
                raise Cut
            return plain(self, state, batch)

        monkeypatch.setattr(Checkpoints, "due", lambda self: True)
        monkeypatch.setattr(self.learner, "step", cut)
        with pytest.raises(Cut):
            self.fit(data[0], home / "cut")
        monkeypatch.setattr(self.learner, "step", plain)
        assert (
            wonderland.fit(None if isinstance(data[0], str | Path) else data[0], resume=home / "cut").metrics
            == run.metrics
        )
        for name in FILES:
            assert digest(run.folder / name) == digest(home / "cut" / name), name

    def test_it_predicts_and_evaluates_new_data_also_after_loading(self, data, run):
        table = run.predict(data[1])
        assert len(table) > 0
        assert "prediction" in table or "set" in table
        record = run.evaluate(data[1])
        assert record["rows"] > 0
        assert set(run.metrics) == set(record["metrics"])
        loaded = wonderland.load(run.folder)
        assert loaded.predict(data[1]).equals(table)
        assert loaded.evaluate(data[1]) == record

    def test_the_shell_does_it_too(self, home, data, run, capsys):
        if not isinstance(data[0], str | Path):
            return
        words = [word for name, value in self.options.items() for word in (f"--{name}", str(value))]
        assert main(["inspect", str(data[0]), *words]) == 0
        out = str(home / "shell")
        assert main(["fit", str(data[0]), *words, "--out", out, "--steps", str(STEPS), "--threads", "1"]) == 0
        assert digest(Path(out) / "model.safetensors") == digest(run.folder / "model.safetensors")
        assert main(["predict", out, str(data[1]), "-o", str(home / "predictions.csv")]) == 0
        assert main(["evaluate", out, str(data[1]), "--json"]) == 0
        assert json.loads(capsys.readouterr().out.rsplit("written to", 1)[1].split("\n", 1)[1])["rows"] > 0

    def test_the_report_says_how_to_fit_it_again(self, home, data, run):
        if not isinstance(data[0], str | Path):
            return
        words = shlex.split(refit_command(run.config)[0]["command"].replace("NEWFOLDER", str(home / "repeated")))
        assert main([*words[1:], "--quiet"]) == 0
        assert digest(home / "repeated" / "model.safetensors") == digest(run.folder / "model.safetensors")

    def test_a_damaged_folder_is_refused_in_a_sentence(self, home, data, run):
        draw = random.Random(0)
        for _ in range(24):
            folder = home / "damaged"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(run.folder, folder, ignore=shutil.ignore_patterns("checkpoint", ".*", "report.html"))
            name = draw.choice(FILES[:-1])
            (folder / name).write_bytes(damaged((folder / name).read_bytes(), name, draw))
            with contextlib.suppress(WonderlandError):
                wonderland.load(folder).predict(data[1])


def digest(path: Path) -> str:
    """The content of a file, without the digests of config.json that other files carry."""
    content = path.read_bytes()
    if path.name == "trust.json":
        content = json.dumps({k: v for k, v in json.loads(content).items() if k != "inputs"}, sort_keys=True).encode()
    if path.name == "report.html":
        content = content.rsplit(b"<!-- made from", 1)[0]
    return hashlib.sha256(content).hexdigest()


def damaged(content: bytes, name: str, draw: random.Random) -> bytes:
    """A file with bytes flipped, cut off, or with one JSON value replaced."""
    way = draw.randrange(3)
    if way == 0 or not content:
        place = draw.randrange(max(1, len(content)))
        return content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :]
    if way == 1 or not name.endswith(".json"):
        return content[: draw.randrange(len(content))]
    value = json.loads(content)
    holder: Any = value
    while isinstance(holder, dict | list) and holder:
        key = draw.choice(list(holder)) if isinstance(holder, dict) else draw.randrange(len(holder))
        if not isinstance(holder[key], dict | list) or not holder[key] or draw.random() < 0.3:
            holder[key] = draw.choice([None, -1, 1e308, "x", [], {}, True, 10**30])
            break
        holder = holder[key]
    return json.dumps(value).encode()
