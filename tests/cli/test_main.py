import json
import os
import shutil
import subprocess
import sys
import time

import pandas as pd
import pytest

from tests import runs
from wonderland.cli.main import main


def said(capsys, *words) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fti"], "There is no verb 'fti'. Did you mean 'fit'? See: wonderland --help"),
        (["fit", "digits", "--epoch", "3"], "Unknown option '--epoch'. Did you mean '--epochs'"),
        (["fit", "digits", "more"], "Unknown argument 'more'."),
        (["fit", "digits", "--epochs", "x"], "--epochs must be a number, not 'x'. See: wonderland fit --help"),
        (["fit", "digits", "--steps", "2.5"], "--steps must be a whole number, not '2.5'. See: wonderland fit --help"),
        (["fit", "digits", "--keep"], "--keep needs a value. See: wonderland fit --help"),
        (["fit", "digits", "--epochs", "1", "--steps", "1"], "Choose one of epochs, steps and budget: each of them sets the length of training."),
        (["fit", "digits", "--task", "multi"], "There is no task 'multi'. Did you mean 'multilabel' or 'multiclass'? Known are binary, "),
        (["fit", "digits", "--precision", "flaot32"], "There is no precision 'flaot32'. Did you mean 'float32'? Known are float32, bfloat16."),
        (["fit", "digits", "--kind", "tabel"], "There is no kind 'tabel'. Did you mean 'table'? Known are table, image, "),
        (["fit", "--help", "tabel"], "There is no kind 'tabel'. Did you mean 'table'? Known are table, image, "),
        (["models", "--kind", "tabel"], "There is no kind 'tabel'. Did you mean 'table'? Known are table, image, "),
        (["fit", "digits", "--model", "ConvNte"], "'ConvNte' is not a part of Wonderland, so it is not built. Did you mean 'ConvNet'"),
        (["check", "a:b", "--side", "lef"], "There is no side 'lef'. Did you mean 'left'? Known are right, left. See: wonderland check --help"),
        (["generate", "run", "--count", "x"], "--count must be a whole number, not 'x'. See: wonderland generate --help"),
        (["predict"], "RUN is missing. See: wonderland predict --help"),
        (["evaluate", "run"], "DATA is missing. See: wonderland evaluate --help"),
        (["fit"], "Nothing to fit: name a file, a folder or a bundled set, or a run to resume."),
        (["fit", "digits", "--level", "1.5"], "The level of sets and intervals is a share between 0 and 1, such as 0.9, not 1.5."),
        (["fit", "digits", "--budget", "soon"], "'soon' is not a length of time: write 90s, 5m or 1h."),
        (["fit", "digits", "--batch-size", "0"], "batch_size must be at least 1, not 0."),
        (["fit", "digits", "--lr", "-1"], "lr must be more than 0, not -1.0."),
        (["fit", "digits", "--lr", "0"], "lr must be more than 0, not 0.0."),
        (["fit", "digits", "--lr", "fast"], "lr must be a number or auto, not 'fast'."),
        (["fit", "iris", "--size", "16"], "size is an option of image and clip, and iris is read as table: leave it out, or name another kind with kind (--kind)."),
        (["fit", "digits", "--test", "2"], "The test part is a share between 0 and 1, such as 0.2, not 2.0."),
        (["fit", "--resume", "nowhere"], "There is no run in nowhere: the folder does not exist."),
        (["fit", "--resume", "nowhere", "--epochs", "3"], "There is no run in nowhere: the folder does not exist."),
        (["predict", "nowhere", "x.csv"], "There is no run in nowhere: the folder does not exist."),
    ],
)  # fmt: skip
def test_errors_to_the_word_with_exit_code_2(capsys, words, message):
    code, _, err = said(capsys, *words)
    assert code == 2
    assert err.startswith(f"wonderland: {message}")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_missing_file_is_an_error(capsys):
    code, _, err = said(capsys, "fit", "no/such/file.csv")
    assert code == 2
    assert "no/such/file.csv" in err


def test_without_arguments_the_help_is_shown(capsys):
    code, out, _ = said(capsys)
    assert code == 0
    assert "fit" in out
    assert "predict" in out


def test_the_options_of_one_kind_are_shown(capsys):
    with pytest.raises(SystemExit) as left:
        main(["fit", "--help", "image"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert "--size PIXELS" in shown
    assert "--tokens" not in shown
    assert shown.endswith("Options of training: wonderland fit --help\n")


def test_models_are_listed(capsys):
    code, shown, _ = said(capsys, "models", "--kind", "table")
    assert code == 0
    assert "TableNet" in shown
    assert "ConvNet" not in shown


@pytest.mark.slow
def test_help_is_quick():
    best = 9.0
    for _ in range(3):
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "wonderland", "--help"], check=True, capture_output=True)
        best = min(best, time.monotonic() - began)
    assert best < 0.5  # 0.3 on a machine that does nothing else


def test_fit_predict_evaluate_inspect(tmp_path, capsys):
    runs.mixed().to_csv(tmp_path / "table.csv", index=False)
    out = tmp_path / "run"
    code, shown, err = said(capsys, "fit", tmp_path / "table.csv", "--target", "risk", "--out", out, "--steps", 40)
    assert code == 0, err
    assert "accuracy" in shown
    assert "coverage of 90% sets" in shown
    assert str(out / "report.html") in shown.replace("\n", "")
    assert "Column 'age'" in shown.replace("\n", " ") or "'age'" in shown
    new = tmp_path / "new.csv"
    runs.mixed(7, seed=9).drop(columns="risk").to_csv(new, index=False)
    code, shown, _ = said(capsys, "predict", out, new, "-o", tmp_path / "p.csv")
    assert (code, len(pd.read_csv(tmp_path / "p.csv"))) == (0, 7)
    assert f"7 predictions written to {tmp_path / 'p.csv'}" in shown
    code, shown, _ = said(capsys, "predict", out, new)
    assert code == 0
    assert "7 predictions" in shown
    code, shown, _ = said(capsys, "evaluate", out, tmp_path / "table.csv", "--json")
    assert code == 0
    assert json.loads(shown)["rows"] == 240
    code, shown, _ = said(capsys, "evaluate", out, tmp_path / "table.csv", "--level", "0.8")
    assert "coverage of 80% sets" in shown
    code, shown, _ = said(capsys, "inspect", tmp_path / "table.csv", "--target", "risk")
    assert code == 0
    assert "category" in shown
    assert "date" in shown


def test_a_wrong_suffix_is_refused_before_predicting(tmp_path, capsys):
    code, _, err = said(capsys, "predict", runs.regressor().folder, "x.csv", "-o", "a.xls")
    assert code == 2
    assert err == "wonderland: Predictions are written as .csv, .parquet or .jsonl, and 'a.xls' ends otherwise.\n"


DAMAGE = ["pickle", "name", "cut", "traversal"]


def hostile(folder, damage):
    """A run folder that somebody prepared."""
    shutil.copytree(runs.regressor().folder, folder)
    if damage == "pickle":
        (folder / "model.safetensors").write_bytes(b"\x80\x04\x95cos\nsystem\n(S'echo'\ntR.")
    elif damage == "cut":
        whole = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(whole[:-1])
    else:
        name = "config.json" if damage == "name" else "trust.json"
        value = json.loads((folder / name).read_text())
        if damage == "name":
            value["recipe"]["model"]["part"] = "os.system"
        else:
            value["inputs"]["../../etc/passwd"] = "0"
        (folder / name).write_text(json.dumps(value))
    return folder


def predicted(folder):
    """`wonderland predict` in a process of its own, which fails if torch was loaded."""
    script = (
        "import sys; from wonderland.cli.main import main; code = main(sys.argv[1:]); "
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    words = [sys.executable, "-c", script, "predict", str(folder), "x.csv"]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_hostile_folder_is_refused_before_torch_is_loaded(tmp_path, damage):
    done = predicted(hostile(tmp_path / "run", damage))
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_hostile_folder_is_refused_quickly(tmp_path, damage):
    folder = hostile(tmp_path / "run", damage)
    began = time.monotonic()
    assert predicted(folder).returncode == 2
    assert time.monotonic() - began < 2  # well below one second on a machine that does nothing else


def test_the_same_command_again_continues_and_another_is_refused(tmp_path, capsys):
    words = ["fit", "iris", "--out", tmp_path / "run", "--steps", 20, "--quiet"]
    assert said(capsys, *words)[0] == 0
    before = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    assert said(capsys, *words)[0] == 0
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == before
    code, _, err = said(capsys, *words, "--seed", 4)
    assert code == 2
    assert err == (
        f"wonderland: {tmp_path / 'run'} holds a run with other options. Choose another folder with --out, "
        "or begin again with --overwrite.\n"
    )
    assert said(capsys, *words, "--seed", 4, "--overwrite")[0] == 0
    code, _, err = said(capsys, "fit", "--resume", tmp_path / "run", "--epochs", 3)
    assert code == 2
    assert err == "wonderland: A resumed run keeps the options it began with: give --resume and the folder only.\n"


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 1 TB")])
def test_no_memory_is_a_sentence(monkeypatch, capsys, error):
    def fail(args):
        raise error

    monkeypatch.setattr("wonderland.cli.models.run", fail)
    assert main(["models"]) == 2
    assert capsys.readouterr().err == (
        "wonderland: there is not enough memory. Take smaller batches (--batch-size, --accumulate), a smaller model, or fewer rows; "
        "a run that had begun continues with --resume.\n"
    )


def test_a_broken_pipe_is_quiet():
    done = subprocess.run(
        f"{sys.executable} -m wonderland.cli.main fit --help | head -1",
        shell=True,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert "Traceback" not in done.stderr
