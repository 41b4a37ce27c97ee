"""Every model builds and runs on the meta device: nothing reads a value, and nothing is created on a fixed device."""

import inspect

import pytest
import torch

from wonderland import models, nn

TRUNK = models.Encoder.spec(vocab=9, dim=8, depth=1, position=nn.Learned.spec(length=16))
SMALL = {"vocab": 9, "dim": 8, "depth": 1}
TOKENS = ((2, 5), torch.int64)
WAVE = models.Wav2Vec2.spec(
    dim=8, depth=1, widths=[4], kernels=[10], strides=[5], position_width=4, position_groups=2
)  # fmt: skip
BUILD = {
    "AlexNet": (lambda: models.AlexNet(3, hidden=8), [((2, 3, 64, 64), torch.float32)]),
    "AnyNet": (
        lambda: models.AnyNet(3, depths=[1, 1], dims=[8, 8], group_widths=[4], dim=4),
        [((2, 3, 16, 16), torch.float32)],
    ),
    "ConvMixer": (lambda: models.ConvMixer(3, dim=4, depth=1), [((2, 3, 8, 8), torch.float32)]),
    "ConvNeXt": (
        lambda: models.ConvNeXt(3, depths=[1, 1], dims=[4, 8], drop_path=0.1),
        [((2, 3, 8, 8), torch.float32)],
    ),
    "DenseNet": (lambda: models.DenseNet(3, depths=[1, 1], growth=4), [((2, 3, 16, 16), torch.float32)]),
    "EfficientNetLite": (lambda: models.EfficientNetLite(3), [((2, 3, 32, 32), torch.float32)]),
    "FCN": (
        lambda: models.FCN(3, trunk=models.ResNet.spec(depths=[1], dims=[4]), stride=4),
        [((2, 3, 16, 16), torch.float32)],
    ),
    "GoogLeNet": (lambda: models.GoogLeNet(3), [((2, 3, 32, 32), torch.float32)]),
    "LeNet": (lambda: models.LeNet(3, 3, 16, 16, norm=True), [((2, 3, 16, 16), torch.float32)]),
    "MLPMixer": (lambda: models.MLPMixer(3, 3, 8, 8, patch=4, dim=4, depth=1), [((2, 3, 8, 8), torch.float32)]),
    "MetaFormer": (lambda: models.MetaFormer(3, depths=[1, 1], dims=[4, 8]), [((2, 3, 16, 16), torch.float32)]),
    "MobileNetV2": (lambda: models.MobileNetV2(3, width=0.25), [((2, 3, 16, 16), torch.float32)]),
    "NiN": (lambda: models.NiN(3, 3, dims=[4, 4, 4]), [((2, 3, 67, 67), torch.float32)]),
    "RegNet": (
        lambda: models.RegNet(3, depth=3, initial=8, slope=8, factor=2, group_width=8),
        [((2, 3, 16, 16), torch.float32)],
    ),
    "ResNeXt": (lambda: models.ResNeXt(3, depths=[1, 1], dims=[8, 16], groups=2), [((2, 3, 16, 16), torch.float32)]),
    "ResNet": (lambda: models.ResNet(3, depths=[1, 1], dims=[4, 8], squeeze=2), [((2, 3, 16, 16), torch.float32)]),
    "UNet": (lambda: models.UNet(3, dim=4, depth=2), [((2, 3, 9, 9), torch.float32)]),
    "VGG": (lambda: models.VGG(3, depths=[1], dims=[4], hidden=4), [((2, 3, 8, 8), torch.float32)]),
    "WhitenedConvNet": (
        lambda: models.WhitenedConvNet(3, widths=[4, 8], crops=1, mirror=True),
        [((2, 3, 8, 8), torch.float32)],
    ),
    "ViT": (
        lambda: models.ViT(3, 3, 8, 8, patch=4, dim=8, depth=1, heads=2, registers=2, pool="both"),
        [((2, 3, 8, 8), torch.float32)],
    ),
    **{
        name: (lambda name=name: getattr(models, name)(6, 9), [((2, 7), torch.int64)])
        for name in (
            "AutoRec",
            "Caser",
            "DeepFM",
            "FactorisationMachine",
            "MatrixFactorisation",
            "NeuMF",
            "SequenceRecommender",
        )
    },
    **{
        name: (lambda name=name: getattr(models, name)(32, 4, 2), [((2, 32, 2), torch.float32)])
        for name in (
            "DLinear",
            "DeepAR",
            "LinearAutoregression",
            "NBeats",
            "NLinear",
            "PatchTST",
            "Seq2SeqForecaster",
            "SequenceForecaster",
            "TCN",
        )
    },
    "TemporalBlock": (lambda: models.TemporalBlock(4, dilation=2), [((2, 7, 4), torch.float32)]),
    "BiRNN": (lambda: models.BiRNN(9, 3, dim=4, state_size=4), [TOKENS]),
    "ConvNet": (lambda: models.ConvNet(1, 3, 8, 8, dim=8, depth=2), [((2, 1, 8, 8), torch.float32)]),
    "Decoder": (lambda: models.Decoder(**SMALL), [TOKENS]),
    "DecomposableAttention": (lambda: models.DecomposableAttention(9, dim=4, hidden=4), [TOKENS, TOKENS]),
    "Encoder": (lambda: models.Encoder(**SMALL, segments=2, separator=3), [TOKENS]),
    "EncoderDecoder": (lambda: models.EncoderDecoder(**SMALL), [TOKENS, TOKENS]),
    "FastText": (lambda: models.FastText(["cat", "dog"], 4, buckets=10), [((2, 3), torch.int64)]),
    "GloVe": (lambda: models.GloVe(9, 4), [((5,), torch.int64), ((5,), torch.int64)]),
    "MaskedLM": (lambda: models.MaskedLM(TRUNK), [TOKENS]),
    "NeuralNgram": (lambda: models.NeuralNgram(9, dim=4, hidden=4), [TOKENS]),
    "Ngram": (lambda: models.Ngram(9, 2, entries=[3, 4]), [TOKENS]),
    "PrefixTuned": (lambda: models.PrefixTuned(models.Decoder.spec(**SMALL), 3), [TOKENS]),
    "PromptTuned": (lambda: models.PromptTuned(models.Decoder.spec(**SMALL), 3), [TOKENS]),
    "RNNLM": (lambda: models.RNNLM(9, 4), [TOKENS]),
    "Seq2Seq": (lambda: models.Seq2Seq(9, 7, dim=4, state_size=4, attention=True), [TOKENS, TOKENS]),
    "SequenceClassifier": (lambda: models.SequenceClassifier(TRUNK, 3), [TOKENS]),
    "SpanFinder": (lambda: models.SpanFinder(TRUNK), [TOKENS]),
    "TableNet": (
        lambda: models.TableNet(3, [4, 2], 2, sigmas=[0.1, 0.7], dropout=[0.0, 0.2], dim=8),
        [((5, 5), torch.float32)],
    ),
    "TextBlend": (
        lambda: models.TextBlend(5, 3, 4, models.TextCNN.spec(vocab=9, classes=3, dim=4, channels=4)),
        [((2, 6), torch.int64)],
    ),
    "TextLinear": (lambda: models.TextLinear(5, 3), [TOKENS]),
    "TextCNN": (lambda: models.TextCNN(9, 3, dim=4, channels=4), [TOKENS]),
    "TokenClassifier": (lambda: models.TokenClassifier(TRUNK, 3), [TOKENS]),
    "Tree": (lambda: models.Tree(9, 2, dim=4, hidden=4), [TOKENS]),
    "AnswerFinder": (
        lambda: models.AnswerFinder(7, dim=4, state_size=4, marks=3),
        [((2, 5, 5), torch.int64)],
    ),
    "BiEncoder": (lambda: models.BiEncoder(9, 3, dim=4), [TOKENS, ((2, 3), torch.int64)]),
    "ClipConvNet": (lambda: models.ClipConvNet(3, 1, dim=4, depth=2), [((2, 4, 1, 8, 8), torch.float32)]),
    "ClipSequenceNet": (lambda: models.ClipSequenceNet(3, 1, dim=8), [((2, 4, 1, 16, 16), torch.float32)]),
    "InceptionTime": (lambda: models.InceptionTime(3, 2, dim=4, depth=3), [((2, 50, 2), torch.float32)]),
    "MatchEncoder": (lambda: models.MatchEncoder(10, dim=4), [((2, 6), torch.int64)]),
    "MelConvNet": (lambda: models.MelConvNet(3, 16, dim=4, depth=2), [((2, 20, 16), torch.float32)]),
    "MultiView": (
        lambda: models.MultiView(models.LeNet.spec(classes=0), 84, classes=3),
        [((2, 3, 1, 28, 28), torch.float32)],
    ),
    "NormFreeResNet": (
        lambda: models.NormFreeResNet(3, depths=[1, 1], dims=[4, 8], stem="small"),
        [((2, 3, 16, 16), torch.float32)],
    ),
    "PairTexts": (
        lambda: models.PairTexts(2, models.BiEncoder.spec(vocab=9, classes=3, dim=4)),
        [TOKENS],
    ),
    "Recogniser": (lambda: models.Recogniser(5, 16, dim=8, depth=1), [((2, 20, 16), torch.float32)]),
    "SpectrogramTransformer": (
        lambda: models.SpectrogramTransformer(3, 16, 32, patch=8, dim=8, depth=1, heads=2),
        [((2, 32, 16), torch.float32)],
    ),
    "SpeechRecogniser": (lambda: models.SpeechRecogniser(WAVE, 5), [((2, 200), torch.float32)]),
    "Tagger": (lambda: models.Tagger(7, 3, dim=4, state_size=4), [((2, 5, 3), torch.int64)]),
    "TripleModel": (lambda: models.TripleModel(5, 3, dim=4), [((2, 3), torch.int64)]),
    "Wav2Vec2": (WAVE.build, [((2, 200), torch.float32)]),
    "WaveConvNet": (lambda: models.WaveConvNet(3, 1, dim=8), [((2, 800, 1), torch.float32)]),
    "WaveNet": (lambda: models.WaveNet(9, 8, depth=3), [TOKENS]),
    "Whisper": (
        lambda: models.Whisper(20, dim=16, depth=1, mels=8, frames=10, positions=12),
        [((2, 8, 20), torch.float32), TOKENS],
    ),
    "Word2Vec": (lambda: models.Word2Vec(9, 4), [((2, 3), torch.int64)]),
}


def on_meta(name):
    with torch.device("meta"):
        return BUILD[name][0]()


def inputs(name):
    return [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in BUILD[name][1]]


# Their input is a graph, whose edges are read as values; tests/nn/graph and tests/kinds/graph try them.
# Recommender, Forecaster, SignalModel and ClipModel are what models of a kind share, and no models themselves.
ABSTRACT = {"Recommender", "Forecaster", "SignalModel", "ClipModel"}
# Fitted to rows in closed form: their forward reads values. tests/road/test_closed_form.py, tests/kinds/series and tests/models/signal try them.
FITTED = {"ForecastBlend", "GLM", "GaussianProcess", "Rocket"}
# They return boxes, whose number depends on values; tests/models/vision/test_detectors.py tries them.
OF_BOXES = {"FasterRCNN", "RetinaNet", "TinySSD"}
# It reads layers of another model, and gives a list.
READERS = {"LayerOutputs"}
OF_GRAPHS = {"GraphNet", "GraphStack", "LinkNet", "MPNN", "Node2Vec", "NodeNet", "WholeGraphNet"}


def test_every_model_is_tried():
    classes = {name for name, value in vars(models).items() if inspect.isclass(value)}
    assert classes - OF_GRAPHS - READERS - ABSTRACT - FITTED - OF_BOXES == set(BUILD)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", sorted(BUILD))
def test_a_model_runs_on_the_meta_device(name, training):
    model = on_meta(name).train(training)
    if name in ("Word2Vec", "FastText"):  # these have no forward: rows of words are read, and words scored
        words = inputs(name)[0]
        y = model.scores(model.read(words), words)
    else:
        y = model(*inputs(name))
    assert y.is_meta
    if y.requires_grad:
        y.sum().backward()
        assert all(value.grad is None or value.grad.is_meta for value in model.parameters())


# Whisper pads the sound itself, and refuses a mask of its spectrogram.
@pytest.mark.parametrize("name", sorted(name for name in BUILD if name not in ("Word2Vec", "FastText", "Whisper")))
def test_a_model_takes_a_mask_on_the_meta_device(name):
    model, given = on_meta(name), inputs(name)
    accepted = inspect.signature(model.forward).parameters
    masks = {
        key: torch.ones(tensor.shape[:2], dtype=torch.bool, device="meta")
        for key, tensor in zip(("mask", "source_mask", "second_mask"), (given[-1], given[0], given[-1]), strict=True)
        if key in accepted
    }
    assert model(*given, **masks).is_meta


@pytest.mark.parametrize("name", ["Decoder", "RNNLM", "NeuralNgram", "Ngram", "Tree"])
def test_a_model_streams_on_the_meta_device(name):
    model, (tokens,) = on_meta(name).eval(), inputs(name)
    with torch.no_grad():
        y, state = model.stream(tokens[:, :3])
        y, state = model.stream(tokens[:, 3:4], state)
        y, state = model.stream(tokens[:, 4:], state)
    assert y.is_meta
    assert y.shape[1] == 1
