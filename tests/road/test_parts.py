"""Models, optimizers and schedules that the user names, and options that a kind does not have."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

import wonderland
from tests.golden.runs import Sources
from wonderland import kinds, models, nn, optim
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.road.catalogue import catalogue
from wonderland.road.parts import parse_model


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return Sources(tmp_path_factory.mktemp("texts")).folder


def recipe(folder):
    return json.loads((folder / "config.json").read_text())["recipe"]


def test_a_model_is_named_as_a_call(texts, tmp_path):
    words = ["fit", str(texts / "corpus.txt"), "--model", "Decoder(dim=16, depth=1, mixer=Mamba(state_size=2))"]
    assert main([*words, "--steps", "3", "--quiet", "--out", str(tmp_path / "run")]) == 0
    model = recipe(tmp_path / "run")["model"]
    assert model["part"] == "models.Decoder"
    assert model["arguments"]["mixer"]["part"] == "nn.Mamba"
    assert model["arguments"]["vocab"] == wonderland.load(tmp_path / "run").encoder.tokenizer.vocab
    assert any(isinstance(module, nn.Mamba) for module in wonderland.load(tmp_path / "run").model.modules())


def test_a_model_is_a_spec_a_name_or_a_module(tmp_path):
    by_spec = wonderland.fit("digits", model=models.ConvNet.spec(dim=8, depth=2), steps=3, out=tmp_path / "spec")
    by_call = wonderland.fit("digits", model="ConvNet(dim=8, depth=2)", steps=3, out=tmp_path / "call")
    by_name = wonderland.fit("digits", model="ConvNet", steps=3, out=tmp_path / "name")
    assert by_spec.metrics == by_call.metrics
    assert recipe(tmp_path / "spec")["model"]["arguments"]["dim"] == 8
    assert recipe(tmp_path / "name")["model"] == recipe_of_default(tmp_path)
    assert by_name.classes == by_call.classes
    own = torch.nn.Sequential(torch.nn.Flatten(), nn_float(), torch.nn.Linear(64, 10))
    assert recipe(wonderland.fit("digits", model=own, steps=3, out=tmp_path / "own").folder)["model"] == {
        "own": "Sequential"
    }


def recipe_of_default(folder):
    return recipe(wonderland.fit("digits", steps=3, out=folder / "default").folder)["model"]


class nn_float(torch.nn.Module):
    def forward(self, x):
        return x.float() / 255


def test_other_models_of_a_kind_are_filled_in_from_the_data(texts, tmp_path):
    run = wonderland.fit(texts / "reviews.csv", model="BiRNN(dim=8, state_size=4)", steps=3, out=tmp_path / "text")
    assert isinstance(run.model, models.BiRNN)
    assert run.recipe.lr == 1e-3
    run = wonderland.fit(texts / "pairs.csv", model="Seq2Seq(dim=8, state_size=8)", steps=2, out=tmp_path / "pairs")
    assert run.ability("generate")("the cat") is not None
    run = wonderland.fit(texts / "corpus.txt", model="RNNLM(state_size=8)", steps=2, out=tmp_path / "corpus")
    assert isinstance(run.ability("generate")("the", 5), str)


def test_an_optimizer_and_a_schedule_are_named_as_calls(tmp_path):
    words = [
        "fit",
        "iris",
        "--optimizer",
        "Lion(lr=1e-4)",
        "--schedule",
        "cosine(floor=0.1)",
        "--steps",
        "4",
        "--quiet",
    ]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    found = recipe(tmp_path / "run")
    assert found["optimizer"] == {"part": "optim.Lion", "arguments": {}}
    assert found["lr"] == 1e-4
    assert found["schedule"] == {"part": "optim.cosine", "arguments": {"floor": 0.1}}
    run = wonderland.fit(
        "iris", optimizer=optim.SGD.spec(momentum=0.9), weight_decay=0.5, steps=2, out=tmp_path / "sgd"
    )
    assert run.recipe.optimizer.arguments == {"momentum": 0.9, "weight_decay": 0.5}
    assert run.recipe.lr == 1e-3  # the optimizer's own, since rates of AdamW mean nothing to it


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "os.system('x')"}, "'os.system' is not a part of Wonderland, so it is not built."),
        ({"model": "__import__('os')"}, "'__import__' is not a part of Wonderland, so it is not built."),
        ({"model": "ConvNet()"}, "models.ConvNet is a model for image, and iris is not. See: wonderland models"),
        ({"model": "TableNet(outputs=7)"}, "models.TableNet is given outputs=7, and iris has 3: leave outputs out."),
        ({"model": 3}, "model must be a name, a spec or a torch.nn.Module, not 3: give an instance, such as Net()."),
        ({"model": "TableNet(dim=100000, depth=500)"}, "Choose a smaller model."),
        ({"optimizer": "cosine()"}, "optim.cosine is not an optimizer."),
        ({"schedule": "Lion()"}, "optim.Lion is not a schedule."),
        ({"optimizer": "Lion(lr=-1)"}, "lr must be more than 0, not -1."),
        (
            {"size": 32},
            "size is an option of image and clip, and iris is read as table: leave it out, or name another kind with kind",
        ),
        ({"lines": True}, "lines is an option of corpus, and iris is read as table"),
        ({"device": "tpu"}, "There is no device 'tpu'. Did you mean 'cpu'? Known are auto, cpu, cuda, mps."),
        (
            {"kind": "tabel"},
            "There is no kind 'tabel'. Did you mean 'table'? Known are table, image, text, corpus, pairs",
        ),
    ],
)
def test_errors_to_the_word(options, message, tmp_path):
    with pytest.raises(WonderlandError) as error:
        wonderland.fit("iris", out=tmp_path / "run", **options)
    assert message in str(error.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "text",
    ["Decoder(dim=10**9)", "Decoder(dim=1000000000)", "(lambda: 0)()", "Decoder(mixer=a.b.c.d)", "Stack(" * 200 + ")" * 200,
     "Decoder(dim=[x for x in 'a'])", "nn.Mamba(dim=4)", "Decoder", ""],
)  # fmt: skip
def test_text_is_parsed_and_never_run(text):
    if text == "Decoder":
        assert parse_model(text).name == "models.Decoder"
        return
    with pytest.raises(WonderlandError):
        parse_model(text)


def test_options_of_another_kind_are_refused_by_name(texts):
    with pytest.raises(WonderlandError, match=r"workers is an option of image, and corpus.txt is read as corpus"):
        wonderland.fit(texts / "corpus.txt", workers=3)
    with pytest.raises(
        WonderlandError,
        match="column is an option of text, corpus, pairs, tags, answers and matches, and digits is read as image",
    ):
        wonderland.fit("digits", column="x")


def test_the_catalogue_names_every_model_with_its_size(capsys):
    rows = catalogue()
    assert {"table", "image", "text", "corpus", "pairs"} <= {row["kind"] for row in rows} <= set(kinds.NAMES)
    fitted = {"GaussianProcess", "GLM"}  # in closed form: they keep a number for each row or column
    assert all(row["parameters"] > (50 if row["model"] in fitted else 100) and row["what it is"] for row in rows)
    assert [f"models.{row['model']}" for row in catalogue("image")] == list(kinds.KINDS["image"].models)
    assert main(["models", "--kind", "image"]) == 0
    assert "ConvNet" in capsys.readouterr().out
    assert main(["models", "--kind", "imag"]) == 2


def test_the_help_of_a_kind_shows_its_own_options(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help", "image"])
    said = capsys.readouterr().out
    assert "--size PIXELS" in said
    assert "--column" not in said
    assert main(["fit", "--help", "imag"]) == 2


def assigned(rows: int = 80) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": draw.normal(size=rows), "b": draw.normal(size=rows)})
    frame["y"] = np.where(frame["a"] > 0, "yes", "no")
    frame["part"] = (["train"] * 6 + ["valid", "calibration", "test", ""]) * (rows // 10)
    return frame


def test_a_column_decides_the_parts(tmp_path):
    run = wonderland.fit(assigned(), split="part", steps=3, out=tmp_path / "run")
    assert run.config["split"]["sizes"] == {"train": 48, "validation": 8, "calibration": 8, "test": 8}
    assert "part" not in [field.name for field in run.encoder.schema()]
    assert run.config["split"]["note"] == "8 rows take no part: the cell that says which is empty."


def test_a_missing_part_is_cut_from_the_one_before_it(tmp_path):
    frame = assigned()
    frame["part"] = np.where(frame["part"].isin(["valid", "calibration"]), "train", frame["part"])
    run = wonderland.fit(frame, split="part", steps=3, out=tmp_path / "run")
    sizes = run.config["split"]["sizes"]
    assert sizes["test"] == 8
    assert sizes["train"] + sizes["validation"] + sizes["calibration"] == 64
    assert min(sizes.values()) > 2
    frame["part"] = frame["part"].replace("test", "late")
    with pytest.raises(WonderlandError, match=r"Column 'part' \(given as split\) says 'late' in row 9"):
        wonderland.fit(frame, split="part", out=tmp_path / "other")


def test_texts_and_pairs_take_a_split_column_too(texts, tmp_path):
    for name in ("reviews", "pairs"):
        frame = pd.read_csv(texts / f"{name}.csv")
        frame["part"] = (["train"] * 7 + ["validation", "test", "test"]) * (len(frame) // 10)
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        run = wonderland.fit(tmp_path / f"{name}.csv", split="part", steps=2, out=tmp_path / name)
        assert run.config["split"]["sizes"]["test"] == len(frame) // 5


def test_nothing_of_a_task_is_created_on_a_fixed_device():
    """Only the CPU can be run here, so losses are taken on the meta device."""
    from wonderland.core.batch import Batch
    from wonderland.tasks import Classification, LanguageModelling, Regression, Translation

    with torch.device("meta"):
        rows = torch.nn.Linear(4, 2)
        decoder = models.Decoder(vocab=9, dim=8, depth=1)
        writer = models.EncoderDecoder(vocab=9, dim=8, depth=1, heads=2)
    x, y = torch.zeros(3, 4, device="meta"), torch.zeros(3, dtype=torch.int64, device="meta")
    tokens = torch.zeros(3, 5, dtype=torch.int64, device="meta")
    cases = [
        (Classification(["a", "b"]), rows, {"x": x, "y": y}),
        (Regression(), torch.nn.Linear(4, 1, device="meta"), {"x": x, "y": y.double()}),
        (LanguageModelling(9), decoder, {"x": tokens, "y": tokens}),
        (Translation(9, 2), writer, {"x": tokens, "y": tokens[:, 2:]}),
    ]
    for task, model, fields in cases:
        logits = model(*task.inputs(Batch(fields)))
        assert logits.device.type == "meta"
        if task.unit == "row":
            assert task.loss(model, Batch(fields))[0].device.type == "meta"


def test_what_is_said_twice_or_would_be_lost_is_refused(tmp_path, capsys):
    frame = assigned()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    refused = {
        "split (--split) names the test rows, and so does test (--test): give one of them.": lambda: wonderland.fit(
            tmp_path / "rows.csv", split="part", test=tmp_path / "rows.csv", out=tmp_path / "a"
        ),
        "The learning rate is given twice, in lr (--lr) and in optimizer (--optimizer): give one of them.": lambda: (
            wonderland.fit("iris", optimizer="Lion(lr=1e-3)", lr=0.1, out=tmp_path / "b")
        ),
        "models.Decoder is a model for corpus, and iris is not. See: wonderland models": lambda: wonderland.fit(
            "iris", model="Decoder(dim=8)", out=tmp_path / "c"
        ),
    }
    for message, call in refused.items():
        with pytest.raises(WonderlandError) as error:
            call()
        assert str(error.value) == message
    frame.loc[frame["part"] == "train", "y"] = "yes"
    with pytest.raises(WonderlandError, match="The training part that the data name has no row of class 'no'"):
        wonderland.fit(frame, "y", split="part", out=tmp_path / "d")
    run = wonderland.fit("iris", steps=2, out=tmp_path / "run")
    copy = tmp_path / "new.csv"
    kinds.open("iris")
    pd.DataFrame({field.name: [1.0] for field in run.encoder.schema()}).to_csv(copy, index=False)
    before = copy.read_text()
    assert main(["predict", str(run.folder), str(copy), "-o", str(copy)]) == 2
    assert "is the data to predict: write the predictions to another file." in capsys.readouterr().err
    assert copy.read_text() == before


def test_targets_may_be_given_as_they_are(tmp_path):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 3))
    run = wonderland.fit(x, np.where(x[:, 0] > 0, "yes", "no"), steps=2, out=tmp_path / "run")
    assert run.classes == ["no", "yes"]


def test_a_module_without_gradients_is_refused(tmp_path):
    class Detached(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).detach()

    with pytest.raises(
        WonderlandError, match="Your module Detached returns outputs without gradients, so it cannot learn"
    ):
        wonderland.fit("iris", model=Detached(4, 3), out=tmp_path / "run")
