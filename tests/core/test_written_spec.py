"""Specs written as calls: what is read, what is refused, and that writing is the inverse of reading."""

import pytest

from wonderland import models, nn, optim
from wonderland.core import Spec, WonderlandError, admit, parse_spec, write_spec


def test_a_call_becomes_the_spec_that_it_describes():
    written = "Decoder(vocab=9, dim=128, depth=4, mixer=Mamba(state_size=4))"
    assert parse_spec(written) == models.Decoder.spec(vocab=9, dim=128, depth=4, mixer=nn.Mamba.spec(state_size=4))
    assert parse_spec("ConvNet(dim=32)", folders=("models",)) == models.ConvNet.spec(dim=32)
    assert parse_spec("cosine(floor=0.5)", folders=("optim",)) == Spec("optim.cosine", {"floor": 0.5})
    assert parse_spec("  models.Decoder(mixer=nn.Mamba)\n") == models.Decoder.spec(mixer=nn.Mamba.spec())


def test_a_bare_name_is_a_part_with_its_defaults():
    assert parse_spec("Mamba") == parse_spec("nn.Mamba") == parse_spec("nn.Mamba()") == nn.Mamba.spec()
    assert parse_spec("cosine") == Spec("optim.cosine")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("-3", -3),
        ("1e-4", 1e-4),
        ("-0.5", -0.5),
        ("True", True),
        ("None", None),
        ("'a b'", "a b"),
        ("[1, (2, 3.0), []]", [1, (2, 3.0), []]),
        ("{'a': {'b': -1}}", {"a": {"b": -1}}),
        ("gelu", nn.gelu),
        ("nn.gelu", nn.gelu),
        ("[LSTM(dim=2), GRU]", [nn.LSTM.spec(dim=2), nn.GRU.spec()]),
    ],
)
def test_arguments_are_literals_functions_and_parts(written, value):
    spec = parse_spec(f"MLP(dim=4, activation={written})")
    assert spec.arguments["activation"] == value
    assert type(spec.arguments["activation"]) is type(value)
    assert parse_spec(write_spec(spec)) == spec


NOT_COMPUTED = "which is not computed: give a number, text, True, False, None, a list, a dict or a part."


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("os.system('x')", "'os.system' is not a part of Wonderland, so it is not built."),
        ("__import__('os')", "'__import__' is not a part of Wonderland, so it is not built."),
        ("Decoder(dim=10**9)", f"dim of models.Decoder is a calculation, {NOT_COMPUTED}"),
        ("Decoder(dim=--1)", f"dim of models.Decoder is a calculation, {NOT_COMPUTED}"),
        ("Decoder(dim=-True)", f"dim of models.Decoder is a calculation, {NOT_COMPUTED}"),
        ("MLP(activation=lambda x: x)", f"activation of nn.MLP is a lambda, {NOT_COMPUTED}"),
        ("Decoder(dim=[i for i in 'x'])", f"dim of models.Decoder is a comprehension, {NOT_COMPUTED}"),
        ("Decoder(dim=f'{1}')", f"dim of models.Decoder is an f-string, {NOT_COMPUTED}"),
        ("Decoder(dim=[1][0])", f"dim of models.Decoder is a subscript, {NOT_COMPUTED}"),
        ("Decoder(dim=1 if True else 2)", f"dim of models.Decoder is a condition, {NOT_COMPUTED}"),
        ("Decoder(dim={1, 2})", f"dim of models.Decoder is a set, {NOT_COMPUTED}"),
        ("Decoder(dim=1j)", f"dim of models.Decoder is a constant of another kind, {NOT_COMPUTED}"),
        ("Decoder(dim=b'x')", f"dim of models.Decoder is a constant of another kind, {NOT_COMPUTED}"),
        ("Decoder(dim=[*[1]])", f"dim of models.Decoder is an argument with a star, {NOT_COMPUTED}"),
        ("Decoder(dim=(n := 3))", f"dim of models.Decoder is an expression, {NOT_COMPUTED}"),
        ("Decoder(dim={1: 2})", "dim of models.Decoder is a dict, whose keys must be text in quotes."),
        ("Decoder(dim={**{}})", "dim of models.Decoder is a dict, whose keys must be text in quotes."),
        ("Decoder(dim={'a': 1, 'a': 2})", "dim of models.Decoder has the key 'a' twice: keep one of them."),
        ("Decoder(dim=1, dim=2)", "models.Decoder is given dim twice: keep one of them."),
        ("Decoder(128)", "Arguments of models.Decoder need their names: write Decoder(name=value, ...)."),
        ("Decoder(mixer=Mamba(8))", "Arguments of nn.Mamba need their names: write Mamba(name=value, ...)."),
        ("Decoder(dim=1e999)", "dim of models.Decoder is a number beyond the range of floating point: give a finite one."),
        ("Decoder(dim=-1e999)", "dim of models.Decoder is a number beyond the range of floating point: give a finite one."),
        ("Decoder(dmi=3)", "models.Decoder has no argument 'dmi'. Did you mean 'dim'?"),
        ("constant", "constant stands for nn.constant and for optim.constant: write one of these."),
    ],
)  # fmt: skip
def test_everything_else_is_refused_in_a_sentence(written, sentence):
    with pytest.raises(WonderlandError) as caught:
        parse_spec(written)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("written", "hint"), [("Decodr(dim=3)", "Did you mean 'Decoder'"), ("nn.Mambo", "Did you mean 'nn.Mamba'")]
)
def test_an_unknown_name_gets_the_nearest(written, hint):
    with pytest.raises(WonderlandError) as caught:
        parse_spec(written)
    assert f"is not a part of Wonderland, so it is not built. {hint}" in str(caught.value)


FORM = "write it as a call with named arguments, such as Decoder(dim=128, mixer=Mamba())."


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("", f"'' cannot be read: {FORM}"),
        ("3", f"'3' is not the name of a part: {FORM}"),
        ("Decoder(dim=", f"'Decoder(dim=' cannot be read near character 8: {FORM}"),
        ("import os", f"'import os' cannot be read near character 1: {FORM}"),
        ("Decoder(); Decoder()", f"'Decoder(); Decoder()' cannot be read near character 10: {FORM}"),
        ("lambda: 1", f"'lambda: 1' is a lambda, which is not computed: {FORM}"),
        ("[Decoder]", f"'[Decoder]' is not the name of a part: {FORM}"),
        ("Decoder(*[1])", f"models.Decoder takes no arguments with stars: {FORM}"),
        ("Decoder(**{'dim': 1})", f"models.Decoder takes no arguments with stars: {FORM}"),
        ("wonderland.nn.Mamba()", f"A part is named as in Mamba or nn.Mamba, with at most one dot: {FORM}"),
        ("Mamba.__class__.__base__", f"A part is named as in Mamba or nn.Mamba, with at most one dot: {FORM}"),
        ("''.join()", f"A part is named as in Mamba or nn.Mamba, with at most one dot: {FORM}"),
        ("Decoder()()", f"What is called must be the name of a part: {FORM}"),
        ("Decoder(dim='\ud800')", f"\"Decoder(dim='?')\" holds characters that are not text: {FORM}"),
    ],
)
def test_texts_that_are_no_call_are_shown_the_form(written, sentence):
    with pytest.raises(WonderlandError) as caught:
        parse_spec(written)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "written",
    [
        "Stack(mixer=" * 200 + "1" + ")" * 200,
        "Stack(blocks=" * 100 + "1" + ")" * 100,
        "Stack(blocks=" + "[" * 100 + "]" * 100 + ")",
        "(" * 5000 + ")" * 5000,
        "-" * 9000 + "1",
        "Decoder" + ".x" * 4900,
        "Decoder" + "()" * 4900,
        "Decoder" + "()" * 900,
        "1" + "+1" * 4900,
        "lambda:" * 1400 + "1",
        "Decoder(dim=" + "9" * 9000 + ")",
        "Decoder(dim=0x" + "f" * 9000 + ")",
        "Decoder(dim=1000000000)",
        "Decoder(dim=" + "1" * 20000 + ")",
        "Decoder(dim=1\0)",
        "'\\d'",
    ],
)
def test_hostile_texts_meet_one_short_sentence(written):
    with pytest.raises(WonderlandError) as caught:
        parse_spec(written)
    assert len(str(caught.value)) < 250
    assert str(caught.value).endswith(".")


def test_folders_limit_where_the_outermost_part_comes_from():
    assert parse_spec("constant", folders=("optim",)) == Spec("optim.constant")
    assert parse_spec("Decoder(mixer=Mamba())", folders=("models",)).name == "models.Decoder"
    with pytest.raises(WonderlandError) as caught:
        parse_spec("Mamba(dim=3)", folders=("models", "optim"))
    assert str(caught.value) == "nn.Mamba cannot be used here: choose a part of models or optim."


def test_writing_is_the_inverse_of_reading():
    spec = models.Decoder.spec(vocab=9, dim=8, mixer=nn.Mamba.spec(), tie=True, norm=None)
    assert write_spec(spec) == "Decoder(vocab=9, dim=8, mixer=Mamba(), tie=True, norm=None)"
    assert parse_spec(write_spec(spec)) == spec
    spec = nn.KernelRegression.spec(kernel=nn.constant)
    assert write_spec(spec) == "KernelRegression(kernel=nn.constant)"
    assert parse_spec(write_spec(spec)) == spec
    assert write_spec(Spec("optim.constant")) == "optim.constant()"
    assert optim.constant is not nn.constant


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), nn.Mamba])
def test_what_cannot_be_written_is_refused(value):
    with pytest.raises(WonderlandError, match=r"dim of nn\.MLP is "):
        write_spec(nn.MLP.spec(dim=value))


def test_parts_inside_tuples_and_dicts_are_built_as_in_lists():
    class Keeps:
        def __init__(self, inside):
            self.inside = inside

    admit([Keeps])
    inside = Spec("own.Keeps", {"inside": ({"a": nn.MLP.spec(dim=2)},)}).build().inside
    assert isinstance(inside[0]["a"], nn.MLP)
