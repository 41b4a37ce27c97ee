"""Few-shot classification by a language model: probabilities by hand, room, the command, and what is refused."""

import json

import pytest
import torch

from wonderland.cli.main import main
from wonderland.core import WonderlandError, permutation
from wonderland.models import Decoder
from wonderland.nn import Attention, Learned
from wonderland.tasks.abilities.few_shot import few_shot

LETTERS = " abcdefghijklmnopqrstuvwxyz:TLx\n"


def encode(text):
    return [LETTERS.index(letter) for letter in text if letter in LETTERS]


def test_probabilities_are_those_of_the_labels_tokens():
    torch.manual_seed(0)
    model = Decoder(vocab=len(LETTERS), dim=8, depth=1).eval()
    texts, labels = ["abc", "bca", "cab", "aab"], ["yes", "no", "yes", "no"]
    measured = few_shot(model, encode, texts, labels, shots=2, seed=1)
    assert (measured.labels, measured.shots, len(measured.truth)) == (["no", "yes"], 2, 2)
    order = permutation(1, 0, 4).tolist()
    shown = [next(i for i in order if labels[i] == name) for name in ("no", "yes")]
    rest = [i for i in order if i not in shown]
    assert measured.truth.tolist() == [("no", "yes").index(labels[i]) for i in rest]
    for row, i in enumerate(rest):
        prompt = "".join(f"Text: {texts[j]}\nLabel: {labels[j]}\n\n" for j in shown) + f"Text: {texts[i]}\nLabel:"
        scores = []
        for name in ("no", "yes"):
            ids, label = encode(prompt), encode(f" {name}")
            with torch.no_grad():
                logits = model(torch.tensor([[*ids, *label]]))[0].double().log_softmax(1)
            scores.append(sum(logits[len(ids) - 1 + k, token] for k, token in enumerate(label)))
        torch.testing.assert_close(measured.probabilities[row], torch.stack(scores).softmax(0), rtol=1e-5, atol=1e-6)
    assert measured.accuracy == float((measured.probabilities.argmax(1) == measured.truth).double().mean())


def test_what_does_not_fit_into_the_positions_is_left_out():
    model = Decoder(
        vocab=len(LETTERS), dim=8, depth=1, mixer=Attention.spec(heads=2), position=Learned.spec(length=60)
    ).eval()
    texts, labels = ["b", "c", "a", "a" * 80], ["no", "yes", "no", "yes"]
    measured = few_shot(model, encode, texts, labels, shots=2, seed=0)
    assert measured.shots <= 1
    assert torch.isfinite(measured.probabilities).all()


def test_what_cannot_be_measured_is_told():
    model = Decoder(vocab=len(LETTERS), dim=8, depth=1)
    for texts, labels, shots, words in [
        (["a", "b"], ["x", "x"], 0,
         "Few-shot evaluation compares labels, and these texts have only one: give labelled texts."),
        (["a", "b"], ["x", "a"], 2, "There are 2 texts, so shots is a number from 0 to 1, not 2."),
    ]:  # fmt: skip
        with pytest.raises(WonderlandError) as error:
            few_shot(model, encode, texts, labels, shots=shots)
        assert str(error.value) == words


@pytest.mark.slow
def test_the_command_compares_with_no_examples(tmp_path, capsys):
    from tests.texts import labelled, rhyme

    (tmp_path / "rhyme.txt").write_text(rhyme(100))
    (tmp_path / "topics.csv").write_text("label,text\n" + "".join(f"{a},{b}\n" for a, b in labelled(30)))
    fit = ["fit", str(tmp_path / "rhyme.txt"), "--steps", "2", "--quiet", "--out", str(tmp_path / "run")]
    assert main(fit) == 0
    words = ["evaluate", str(tmp_path / "run"), str(tmp_path / "topics.csv"), "--shots", "3"]
    assert main([*words, "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert {name: value["rows"] for name, value in measured.items()} == {"0": 27, "3": 27}
    assert main(words) == 0
    assert "27 texts, 3 labels" in capsys.readouterr().out
