"""How verdicts are displayed."""

from wonderland.laws import Verdict, Verdicts

HELD = Verdict("determinism", "holds", 0.0, 0.0)
BROKEN = Verdict("causality", "broken", 0.12, 1e-12, "output 3 moved by 0.12 when input 7 changed (row 0)")
UNFIT = Verdict("streaming", "not applicable", witness="it has no <stream>")
TRIED = Verdict("locality", "broken", 1.0, 0.0, "somewhere", promised=False)


def test_a_verdict_is_true_unless_the_law_is_broken():
    assert HELD
    assert UNFIT
    assert not BROKEN


def test_a_verdict_is_one_line():
    assert str(HELD) == "determinism: holds, error 0 (allowed 0)"
    assert str(UNFIT) == "streaming: not applicable: it has no <stream>"
    assert BROKEN._repr_html_() == f"<code>{BROKEN}</code>"


def test_verdicts_are_a_list_with_names():
    verdicts = Verdicts([HELD, BROKEN, UNFIT, TRIED])
    assert len(verdicts) == 4
    assert verdicts[1] is verdicts["causality"] is BROKEN
    assert list(verdicts[:2]) == [HELD, BROKEN]
    assert verdicts.broken == [BROKEN]


def test_verdicts_are_a_table():
    assert str(Verdicts([HELD, BROKEN, TRIED])).splitlines() == [
        "law          outcome        error  allowed  witness",
        "determinism  holds          0      0",
        "causality    broken         0.12   1e-12    output 3 moved by 0.12 when input 7 changed (row 0)",
        "locality     does not hold  1      0        somewhere",
    ]


def test_verdicts_are_safe_html():
    shown = Verdicts([UNFIT, BROKEN])._repr_html_()
    assert "it has no &lt;stream&gt;" in shown
    assert shown.count("<tr>") == 3
