"""wonderland generate and chat: text to the terminal, turns, commands; what cannot write is refused."""

import io
import re

import pytest

from tests.kinds.pairs.test_kind import translator
from tests.runs import classifier
from tests.texts import language
from wonderland.cli.chat import HELP, Conversation
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.core.errors import printable


def test_generate_writes_after_the_prompt(capsys):
    folder = str(language().folder)
    assert main(["generate", folder, "--prompt", "The ", "--count", "40", "--seed", "3"]) == 0
    said = capsys.readouterr().out
    assert said == "The " + language().ability("generate")("The ", 40, seed=3, temperature=0.8) + "\n"
    assert (
        main(
            ["generate", folder, "--prompt", "The ", "--count", "40", "--temperature", "0", "--stop", " ", "--no-echo"]
        )
        == 0
    )
    assert " " not in capsys.readouterr().out
    assert main(["generate", folder, "--count", "5", "--top-k", "1"]) == 0
    assert len(capsys.readouterr().out) == 6


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--count", "0"], "count, the number of tokens to generate, is a whole number from 1, not 0."),
        (["--temperature", "-1"], "temperature is a number from 0"),
        (["--top-p", "2"], "top_p is a probability above 0, at most 1, not 2.0."),
        (["--tempreature", "1"], "Unknown option '--tempreature'. Did you mean '--temperature'?"),
    ],
)
def test_bad_options(capsys, words, says):
    assert main(["generate", str(language().folder), *words]) == 2
    assert says in capsys.readouterr().err


def test_generate_writes_what_matches_and_searches(capsys, tmp_path):
    write, folder = language().ability("generate"), str(language().folder)
    assert main(["generate", folder, "--prompt", "The ", "--matches", "(fox|hare) (ran|sat)", "--no-echo"]) == 0
    assert re.fullmatch("(fox|hare) (ran|sat)\n", capsys.readouterr().out)
    assert (
        main(["generate", folder, "--prompt", "The ", "--beams", "3", "--count", "9", "--stop", "r", "--no-echo"]) == 0
    )
    said = capsys.readouterr().out
    assert said == write("The ", 9, beams=3, stop="r") + "\n"
    assert "r" not in said
    (tmp_path / "schema.json").write_text('{"enum": ["fox", "hare"]}')
    assert main(["generate", folder, "--schema", str(tmp_path / "schema.json")]) == 2
    assert "No matching text can be written with these pieces" in capsys.readouterr().err  # there are no quotes
    assert main(["generate", folder, "--schema", str(tmp_path / "schema.json"), "--matches", "a"]) == 2
    assert "Choose one of --matches and --schema." in capsys.readouterr().err
    assert main(["generate", folder, "--beams", "2", "--top-k", "3"]) == 2
    assert "top_k is an option of sampling, and beams=... is beam search: give one of them." in capsys.readouterr().err
    with pytest.raises(WonderlandError, match="Give only one of matches, schema and constraint"):
        write("The ", matches="a", schema={})


def test_unknown_tokens_of_a_prompt_give_a_warning(capsys):
    assert main(["generate", str(language().folder), "--prompt", "\u00c6 fox", "--count", "3"]) == 0
    assert (
        capsys.readouterr().err == "wonderland: 1 token of the prompt is not in the vocabulary and counts as unknown.\n"
    )


def test_a_translator_translates(capsys):
    run, folder = translator(), str(translator().folder)
    translate = run.ability("generate")
    text = run.predict(["two dog sees"])["prediction"][0]
    assert main(["generate", folder, "--prompt", "two dog sees"]) == 0
    assert capsys.readouterr().out == f"{text}\n"
    assert main(["generate", folder, "--prompt", "two dog sees", "--beams", "2"]) == 0
    assert capsys.readouterr().out == translate("two dog sees", beams=2) + "\n"
    assert translate("two dog sees", beams=1) == text
    for words, says in (
        (["--count", "3"], "--count is for language models, and this run is a translator."),
        ([], "There is no text to translate: give it with --prompt."),
        (
            ["--prompt", "a", "--beams", "2", "--seed", "1"],
            "seed is an option of sampling, and beams=... is beam search",
        ),
    ):
        assert main(["generate", folder, *words]) == 2
        assert says in capsys.readouterr().err
    assert main(["chat", folder]) == 2
    assert capsys.readouterr().err == (
        f"wonderland: The run in {folder} is a translation run and cannot chat. It can predict, evaluate and generate.\n"
    )


def test_runs_that_cannot_generate(capsys, tmp_path):
    folder = str(classifier().folder)
    assert main(["generate", folder]) == 2
    assert capsys.readouterr().err == (
        f"wonderland: The run in {folder} is a classification run and cannot generate. It can predict and evaluate.\n"
    )
    assert main(["chat", str(tmp_path / "none")]) == 2
    assert "the folder does not exist" in capsys.readouterr().err


def test_chat_reads_lines_and_commands(capsys, monkeypatch):
    lines = "The fox\n\n/help\n/temperature 0\n/count 10\n/temperature hot\n/rest\n/reset\nA hare\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert main(["chat", str(language().folder), "--count", "12"]) == 0
    said = capsys.readouterr().out
    for text in (HELP, "Temperature 0.", "At most 10 tokens.", "/temperature takes a number, such as /temperature 0.7.",
                 "There is no /rest. Did you mean 'reset'? /help shows the commands.", "The conversation is cleared."):  # fmt: skip
        assert text in said, text
    monkeypatch.setattr("sys.stdin", io.StringIO("/quit\nmore\n"))
    assert main(["chat", str(language().folder)]) == 0
    assert capsys.readouterr().out == ""


def answer(conversation, line):
    return conversation.write(conversation.read(line))


def test_a_conversation_grows_and_is_cleared():
    writing = language().ability("chat")
    conversation = Conversation(writing, 8, {"temperature": 0}, [])
    first = "".join(answer(conversation, "The fox"))
    assert conversation.text == f"The fox\n{first}" + ("" if first.endswith("\n") else "\n")
    "".join(answer(conversation, "A" * 1000))
    assert len(conversation.text) < 9 * writing.encoder.context
    conversation.command("/reset")
    assert conversation.text == ""


def test_control_characters_do_not_reach_the_terminal():
    assert printable("a\x1b[31m\tb\n", "\n\t") == "a\N{REPLACEMENT CHARACTER}[31m\tb\n"


def test_the_other_verbs_read_text(capsys, tmp_path):
    folder = str(language().folder)
    (tmp_path / "new.txt").write_text("The fox ran over the hill and went home.\n" * 4)
    assert main(["evaluate", folder, str(tmp_path / "new.txt")]) == 0
    assert "bits per byte" in capsys.readouterr().out
    assert main(["predict", folder, str(tmp_path / "new.txt"), "-o", str(tmp_path / "out.csv")]) == 0
    assert (tmp_path / "out.csv").read_text().startswith("text,tokens,loss,bits_per_byte,perplexity,next,set\n")
    assert main(["inspect", str(tmp_path / "new.txt")]) == 0
    assert "language modelling" in capsys.readouterr().out


def test_a_line_that_cannot_be_encoded_does_not_end_the_chat(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("The \udcff fox\nA hare\nThe 日\n"))
    assert main(["chat", str(language().folder), "--count", "3"]) == 0
    said = capsys.readouterr()
    assert said.err == (
        "wonderland: The text holds half of a character (a lone surrogate) at position 4: it is damaged.\n"
        "wonderland: 1 token of the prompt is not in the vocabulary and counts as unknown.\n"
    )
    assert len(said.out.splitlines()) >= 3


def test_errors_about_folders_that_are_not_runs(capsys, tmp_path):
    (tmp_path / "a.txt").write_text("text")
    assert main(["generate", str(tmp_path / "a.txt")]) == 2
    path = tmp_path / "a.txt"
    assert (
        capsys.readouterr().err
        == f"wonderland: {path} is a file, and a run is a folder: wonderland fit {path} makes one.\n"
    )
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    assert main(["chat", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"wonderland: {tmp_path} is a checkpoint of transformers, not a run. Fine-tune it with: wonderland fit DATA --from {tmp_path}\n"
    )


def test_wrong_options_end_a_chat(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("The fox\n"))
    assert main(["chat", str(language().folder), "--top-p", "7"]) == 2
    assert capsys.readouterr().err == "wonderland: top_p is a probability above 0, at most 1, not 7.0.\n"
