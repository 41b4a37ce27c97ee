"""The proving ground asks what can be answered, and its stated numbers are reached."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.proving_ground.__main__ import main, remembered
from examples.proving_ground.adding import BASELINE, adding
from examples.proving_ground.contest import Result, build, compete, kept_megabytes, score
from examples.proving_ground.copying import copying, shortened
from examples.proving_ground.copying import shorter_first as shorter_copies
from examples.proving_ground.examples import SILENT, Examples
from examples.proving_ground.induction import induction
from examples.proving_ground.induction import shorter_first as shorter_rows
from examples.proving_ground.memory import memory
from examples.proving_ground.mixers import entries
from examples.proving_ground.recall import beginnings_first, recall
from examples.proving_ground.table import glance, verdicts
from examples.proving_ground.tasks import TASKS, Claim, Task, quick

MAKERS = (recall, copying, induction, adding, memory)
seeds = st.integers(0, 2**63 - 1)
few = settings(max_examples=10, deadline=None)


@pytest.mark.parametrize("make", MAKERS)
def test_examples_are_a_function_of_the_seed(make):
    one, same, other = make(3, 5), make(3, 5), make(4, 5)
    assert torch.equal(one.inputs, same.inputs)
    assert torch.equal(one.target, same.target)
    assert not torch.equal(one.inputs, other.inputs)


@few
@given(seeds, st.integers(1, 6), st.integers(0, 20))
def test_recall_asks_each_key_once_after_the_pairs_and_wants_its_value(seed, pairs, more):
    examples = recall(seed, 8, vocab=64, length=4 * pairs + 2 * more, pairs=pairs)
    for row, target in zip(examples.inputs.tolist(), examples.target.tolist(), strict=True):
        told = dict(zip(row[: 2 * pairs : 2], row[1 : 2 * pairs : 2], strict=True))
        asked = [place for place, value in enumerate(target) if value != SILENT]
        assert len(told) == pairs == len(set(told.values()))
        assert all(0 < key < 32 <= value < 64 for key, value in told.items())
        assert {row[place]: target[place] for place in asked} == told
        assert all(place >= 2 * pairs and place % 2 == 0 for place in asked)


def test_recall_asks_soon_more_often_than_late():
    asked = (recall(0, 2000).target != SILENT).float().mean(0)
    assert asked[8] > 2 * asked[14] > 2.5 * asked[62]


@few
@given(seeds, st.integers(1, 8), st.integers(0, 20))
def test_copying_wants_the_words_in_their_order(seed, words, more):
    examples = copying(seed, 8, vocab=9, length=2 * words + 1 + more, words=words)
    for row, target in zip(examples.inputs.tolist(), examples.target.tolist(), strict=True):
        sign = row.index(8)
        assert sign == len(row) - words - 1
        assert row[sign + 1 :] == [7] * words
        assert target == [SILENT] * (sign + 1) + [token for token in row[:sign] if token != 7]


@few
@given(seeds, st.integers(1, 10), st.integers(0, 30))
def test_a_shortened_copy_wants_the_first_words_of_the_whole(seed, words, blanks):
    whole = copying(seed, 8, vocab=9, length=41, words=10)
    examples = shortened(whole, words, blanks, torch.Generator().manual_seed(seed % 1000))
    for row, target, said in zip(
        examples.inputs.tolist(), examples.target.tolist(), whole.target[:, -10:].tolist(), strict=True
    ):
        room = words + blanks
        assert [token for token in row[:room] if token != 7] == said[:words]
        assert row[room:] == [8] + [7] * words
        assert target == [SILENT] * (room + 1) + said[:words]


@few
@given(seeds, st.floats(0, 1))
def test_copying_made_easier_is_never_longer(seed, done):
    easier = shorter_copies(copying(seed, 2, length=60, words=4), done, torch.Generator().manual_seed(seed % 1000))
    assert (easier.target != SILENT).any(1).all()
    assert easier.inputs.shape == easier.target.shape
    assert easier.inputs.shape[1] <= 60


@few
@given(seeds, st.floats(0, 1))
def test_induction_made_easier_is_still_induction(seed, done):
    easier = shorter_rows(induction(seed, 8, length=30), done, torch.Generator().manual_seed(seed % 1000))
    for row, target in zip(easier.inputs.tolist(), easier.target.tolist(), strict=True):
        assert [place for place, token in enumerate(row) if token == 15] == [row.index(15), len(row) - 1]
        assert target == [SILENT] * (len(row) - 1) + [row[row.index(15) + 1]]


@few
@given(seeds, st.floats(0, 1))
def test_recall_made_easier_is_a_beginning_that_asks(seed, done):
    whole = recall(seed, 8)
    easier = beginnings_first(whole, done, torch.Generator().manual_seed(seed % 1000))
    length = easier.inputs.shape[1]
    assert torch.equal(easier.inputs, whole.inputs[:, :length])
    assert torch.equal(easier.target, whole.target[:, :length])
    assert (easier.target != SILENT).any()


@few
@given(seeds, st.integers(3, 40))
def test_induction_wants_what_followed_the_special_token(seed, length):
    examples = induction(seed, 8, vocab=5, length=length)
    for row, target in zip(examples.inputs.tolist(), examples.target.tolist(), strict=True):
        first = row.index(4)
        assert first < length - 2
        assert [place for place, token in enumerate(row) if token == 4] == [first, length - 1]
        assert target == [SILENT] * (length - 1) + [row[first + 1]]


@few
@given(seeds, st.integers(2, 40))
def test_adding_marks_one_number_in_each_half(seed, length):
    examples = adding(seed, 8, length=length)
    numbers, marks = examples.inputs.unbind(2)
    assert torch.equal(marks[:, : length // 2].sum(1), torch.ones(8))
    assert torch.equal(marks[:, length // 2 :].sum(1), torch.ones(8))
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert torch.equal((numbers * marks).sum(1), examples.target)


def test_always_saying_one_earns_the_baseline_of_adding():
    assert abs((adding(0, 20_000, length=2).target - 1).square().mean().item() - BASELINE) < 0.015


@few
@given(seeds, st.integers(1, 5), st.integers(1, 20))
def test_memory_wants_the_symbols_after_the_silence(seed, held, silence):
    examples = memory(seed, 8, symbols=4, held=held, silence=silence)
    said = examples.inputs[:, :held]
    assert ((said >= 1) & (said <= 4)).all()
    assert torch.equal(examples.target[:, -held:], said)
    assert (examples.target[:, :-held] == SILENT).all()
    assert (examples.inputs[:, held:-held].sum(1) == 5).all()
    assert (examples.inputs[:, -held - 1] == 5).all()
    assert (examples.inputs[:, -held:] == 0).all()


@pytest.mark.parametrize(
    ("make", "sizes", "sentence"),
    [
        (recall, {"length": 14}, "Recall needs an even length of at least 16 and a vocabulary of 20."),
        (copying, {"length": 20}, "Copying needs a length of at least 33 and a vocabulary of 3."),
        (induction, {"length": 2}, "Induction needs a length of at least 3 and a vocabulary of 2."),
        (adding, {"length": 1}, "Adding needs a length of at least 2."),
        (
            memory,
            {"silence": 0},
            "Copy memory needs at least one symbol, one place to hold it, and one step of silence.",
        ),
    ],
)
def test_sizes_that_leave_no_room_meet_a_sentence(make, sizes, sentence):
    with pytest.raises(ValueError) as error:
        make(0, 1, **sizes)
    assert str(error.value) == sentence


def test_a_model_that_knows_the_answers_scores_one():
    task = TASKS["copy memory"]
    examples = task.make(0, 8, **task.sizes)
    model = build(quick(task), "GRU")
    with torch.no_grad():
        wrong = Examples(examples.inputs, examples.target.masked_fill(examples.target != SILENT, 9))
        model.logits = lambda h: torch.eye(10)[torch.full(h.shape[:-1], 9)]
        assert score(model, wrong) == 1
        assert score(model, examples) == 0


def test_a_batch_of_twice_the_rows_holds_about_twice_the_memory():
    task = quick(TASKS["adding"])
    model, examples = build(task, "GRU"), task.make(0, 64, **task.sizes)
    once, twice = (kept_megabytes(model, examples.rows(torch.arange(rows))) for rows in (32, 64))
    assert 1.8 * once < twice < 2.2 * once


def test_a_contest_is_a_function_of_its_seed():
    task = quick(TASKS["adding"])
    one, same = (compete(task, "convolution", 0, lambda _: None) for _ in range(2))
    assert one.scores == same.scores
    assert (one.steps, one.mixer) == (4, "convolution")


def test_a_claim_is_judged_on_the_side_it_names():
    task = replace(TASKS["adding"], claims=(Claim("GRU", 0.01, below=True), Claim("GRU", 0.9, at="x4")))
    result = replace(compete(quick(task), "GRU", 0, lambda _: None), scores={"": 0.005, "x4": 0.5})
    assert verdicts([task], [result]) == [
        (True, "adding: GRU below 0.01 - reached, 0.0050"),
        (False, "adding: GRU at x4 at least 0.9 - MISSED, 0.5000"),
    ]


def test_the_command_prints_and_keeps_one_table(tmp_path, capsys):
    out = tmp_path / "table.md"
    given = [
        "--quick",
        "--tasks",
        "adding",
        "--mixers",
        "GRU",
        "S4D",
        "--out",
        str(out),
        "--kept",
        str(tmp_path / "kept.jsonl"),
    ]
    assert main(given) == 0
    tables = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [line.split("|")[2].strip() for line in tables[:3]] == ["mixer", "GRU", "S4D"]
    assert [line.split("|")[1].strip() for line in tables[3:]] == ["mixer", "GRU", "S4D"]
    assert set(tables) <= set(out.read_text().splitlines())
    kept = (tmp_path / "kept.jsonl").read_text()
    assert main(given) == 0
    assert (tmp_path / "kept.jsonl").read_text() == kept


def test_at_a_glance_solved_tasks_have_a_star_and_missing_ones_nothing():
    def result(task, mixer, score):
        return Result(task, mixer, {"": score, "x4": 0.5}, 1, 1.0, 1.0, 1, 1)

    results = [
        result("associative recall", "GRU", 0.25),
        result("adding", "GRU", 0.0004),
        result("adding", "LRU", 0.05),
        result("associative recall", "LRU", 0.9951),
    ]
    assert glance([TASKS["associative recall"], TASKS["adding"]], results).splitlines() == [
        "| mixer | associative recall | adding   |",
        "|-------|--------------------|----------|",
        "| GRU   | 0.250              | 0.0004 * |",
        "| LRU   | 0.995 *            | 0.0500   |",
    ]


def test_showing_trains_nothing(tmp_path, capsys):
    places = ["--out", str(tmp_path / "table.md"), "--kept", str(tmp_path / "kept.jsonl")]
    assert main(["--show", *places]) == 0
    heads = [line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert heads == ["task", "mixer"]
    assert not (tmp_path / "kept.jsonl").exists()


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "kept.jsonl"
    path.write_text(json.dumps({"key": "a"}) + '\n{"key\n')
    assert remembered(path) == {}


def test_a_missed_number_is_exit_code_one(tmp_path):
    places = ["--out", str(tmp_path / "table.md"), "--kept", str(tmp_path / "kept.jsonl")]
    assert main(["--tasks", "adding", "--mixers", "GRU", "--steps", "1", *places]) == 1


def test_an_unknown_name_is_told_with_the_nearest(capsys):
    assert main(["--tasks", "ading"]) == 2
    known = ", ".join(map(repr, TASKS))
    assert capsys.readouterr().err == f"There is no task 'ading'; there are {known}. Did you mean 'adding'?\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--steps", "0"], "--steps is at least 1, not 0."),
        (["--length", "-5"], "--length is at least 2, not -5."),
        (["--kept", "."], "--kept names a file, and . is a folder."),
    ],
)
def test_options_that_do_not_fit_are_told(options, sentence, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(options) == 2
    assert capsys.readouterr().err == f"{sentence}\n"


def test_every_claim_names_a_mixer_and_a_test_that_exist():
    for task in TASKS.values():
        for claim in task.claims:
            assert claim.mixer in entries(task.length)
            assert claim.at in {"", *task.also}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mixer"),
    [
        ("associative recall", "attention"),
        ("selective copying", "Mamba"),
        ("selective copying", "S4D"),
    ],
)
def test_a_stated_number_is_reached(name, mixer):
    task: Task = TASKS[name]
    result = compete(task, mixer, 0, lambda _: None)
    assert all(claim.holds(result.scores[claim.at]) for claim in task.claims if claim.mixer == mixer), result
