"""Samples, neighbours and attention in the report: escaped, bounded, drawn."""

from wonderland.understand import charts, render

NASTY = "<img src=x onerror=alert(1)> & more"


def test_samples_neighbours_and_attention_are_escaped():
    page = render(
        {
            "samples": [
                {"prompt": NASTY, "text": NASTY * 100, "temperature": 0.8},
                {"text": "plain", "temperature": 0},
                {},
            ],
            "neighbours": [{"token": NASTY, "near": [{"token": NASTY, "cosine": 0.5}]}, {"token": "alone", "near": []}],
            "attention": [{"layer": 1, "head": 2, "tokens": ["a", NASTY], "weights": [[1.0, 0.0], [0.25, 0.75]]}],
        }
    )
    assert "<img" not in page
    assert "&lt;img" in page
    assert "greedy decoding" in page
    assert "Layer 1, head 2" in page


def test_attention_is_drawn_for_any_size():
    drawn = charts.attention(["a", "b", "c"], [[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.2, 0.6]])
    assert drawn.count("<rect") >= 7
    assert "the largest weight is from c to c, 60" in drawn
    assert "Nothing to draw" in charts.attention([], [])
    assert charts.attention(["a"], [[1.0]]).startswith("<svg")
    many = charts.attention([str(i) for i in range(100)], [[0.01] * 100] * 100)
    assert ">31<" in many
    assert ">32<" not in many


def test_sets_of_tokens_are_named_tokens():
    sets = {"level": 0.9, "coverage": 0.91, "mean_size": 3.0, "sizes": {"1": 5, "2": 6}, "empty": 2}
    facts = {"conformal": sets, "choices": "tokens", "noun": "tokens", "split": {"test": 11, "calibration": 20}}
    page = render(facts)
    assert "set of tokens" in page
    assert "set of classes" in render({**facts, "choices": None})
