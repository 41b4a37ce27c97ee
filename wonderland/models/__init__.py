"""Named architectures, each a short file built from nn."""

from wonderland.models import generative, words
from wonderland.models.adapt import adapt, adapted, merge, train_only
from wonderland.models.adapter_files import load_adapter, save_adapter
from wonderland.models.answer_finder import AnswerFinder
from wonderland.models.birnn import BiRNN
from wonderland.models.clip import ClipConvNet, ClipModel, ClipSequenceNet
from wonderland.models.convnet import ConvNet
from wonderland.models.corruption import mask_spans, mask_tokens, replace_spans
from wonderland.models.costs import cost_table
from wonderland.models.decoder import Decoder
from wonderland.models.decomposable import DecomposableAttention
from wonderland.models.encoder import Encoder
from wonderland.models.encoder_decoder import EncoderDecoder
from wonderland.models.gaussian_process import GaussianProcess
from wonderland.models.glm import GLM
from wonderland.models.graph_memory import step_bytes
from wonderland.models.graph_net import GraphNet, GraphStack, LinkNet, NodeNet, WholeGraphNet
from wonderland.models.heads import MaskedLM, SequenceClassifier, SpanFinder, TokenClassifier, best_spans
from wonderland.models.merging import merge_weights
from wonderland.models.mpnn import MPNN
from wonderland.models.neural_ngram import NeuralNgram
from wonderland.models.ngram import Ngram
from wonderland.models.node2vec import Node2Vec, random_walks
from wonderland.models.packed import packed
from wonderland.models.pair_texts import BiEncoder, MatchEncoder, PairTexts
from wonderland.models.prompt_tuning import PrefixTuned, PromptTuned
from wonderland.models.recommend import (
    AutoRec,
    Caser,
    DeepFM,
    FactorisationMachine,
    MatrixFactorisation,
    NeuMF,
    Recommender,
    SequenceRecommender,
    implicit_als,
    item_neighbours,
    rating_als,
)
from wonderland.models.rnnlm import RNNLM
from wonderland.models.seq2seq import Seq2Seq
from wonderland.models.series import (
    TCN,
    DeepAR,
    DLinear,
    ForecastBlend,
    Forecaster,
    LinearAutoregression,
    NBeats,
    NLinear,
    PatchTST,
    Seq2SeqForecaster,
    SequenceForecaster,
    TemporalBlock,
)
from wonderland.models.signal import (
    InceptionTime,
    MelConvNet,
    Recogniser,
    Rocket,
    SignalModel,
    SpectrogramTransformer,
    WaveConvNet,
    WaveNet,
    generate_wave,
)
from wonderland.models.speech.wav2vec2 import SpeechRecogniser, Wav2Vec2
from wonderland.models.speech.whisper import Whisper, speech_features
from wonderland.models.tablenet import TableNet
from wonderland.models.tagger import Tagger
from wonderland.models.text_linear import TextBlend, TextLinear
from wonderland.models.textcnn import TextCNN
from wonderland.models.tree import Tree
from wonderland.models.triples import TripleModel, filtered_ranks
from wonderland.models.universal import approximate, approximate_with_relu
from wonderland.models.vision.alexnet import AlexNet
from wonderland.models.vision.anynet import AnyNet
from wonderland.models.vision.convmixer import ConvMixer
from wonderland.models.vision.convnext import ConvNeXt
from wonderland.models.vision.densenet import DenseNet
from wonderland.models.vision.efficientnet_lite import EfficientNetLite
from wonderland.models.vision.faster_rcnn import FasterRCNN
from wonderland.models.vision.fcn import FCN
from wonderland.models.vision.googlenet import GoogLeNet
from wonderland.models.vision.lenet import LeNet
from wonderland.models.vision.metaformer import MetaFormer
from wonderland.models.vision.mlp_mixer import MLPMixer
from wonderland.models.vision.mobilenet import MobileNetV2
from wonderland.models.vision.multi_view import MultiView
from wonderland.models.vision.nin import NiN
from wonderland.models.vision.norm_free_resnet import NormFreeResNet
from wonderland.models.vision.regnet import RegNet
from wonderland.models.vision.resnet import ResNet
from wonderland.models.vision.resnext import ResNeXt
from wonderland.models.vision.retinanet import RetinaNet
from wonderland.models.vision.style import LayerOutputs, style_transfer
from wonderland.models.vision.tiny_ssd import TinySSD
from wonderland.models.vision.unet import UNet
from wonderland.models.vision.vgg import VGG
from wonderland.models.vision.vit import ViT
from wonderland.models.vision.whitened_convnet import WhitenedConvNet
from wonderland.models.words import FastText, GloVe, Word2Vec

__all__ = [
    "FCN",
    "GLM",
    "MPNN",
    "RNNLM",
    "TCN",
    "VGG",
    "AlexNet",
    "AnswerFinder",
    "AnyNet",
    "AutoRec",
    "BiEncoder",
    "BiRNN",
    "Caser",
    "ClipConvNet",
    "ClipModel",
    "ClipSequenceNet",
    "ConvMixer",
    "ConvNeXt",
    "ConvNet",
    "DLinear",
    "Decoder",
    "DecomposableAttention",
    "DeepAR",
    "DeepFM",
    "DenseNet",
    "EfficientNetLite",
    "Encoder",
    "EncoderDecoder",
    "FactorisationMachine",
    "FastText",
    "FasterRCNN",
    "ForecastBlend",
    "Forecaster",
    "GaussianProcess",
    "GloVe",
    "GoogLeNet",
    "GraphNet",
    "GraphStack",
    "InceptionTime",
    "LayerOutputs",
    "LeNet",
    "LinearAutoregression",
    "LinkNet",
    "MLPMixer",
    "MaskedLM",
    "MatchEncoder",
    "MatrixFactorisation",
    "MelConvNet",
    "MetaFormer",
    "MobileNetV2",
    "MultiView",
    "NBeats",
    "NLinear",
    "NeuMF",
    "NeuralNgram",
    "Ngram",
    "NiN",
    "Node2Vec",
    "NodeNet",
    "NormFreeResNet",
    "PairTexts",
    "PatchTST",
    "PrefixTuned",
    "PromptTuned",
    "Recogniser",
    "Recommender",
    "RegNet",
    "ResNeXt",
    "ResNet",
    "RetinaNet",
    "Rocket",
    "Seq2Seq",
    "Seq2SeqForecaster",
    "SequenceClassifier",
    "SequenceForecaster",
    "SequenceRecommender",
    "SignalModel",
    "SpanFinder",
    "SpectrogramTransformer",
    "SpeechRecogniser",
    "TableNet",
    "Tagger",
    "TemporalBlock",
    "TextBlend",
    "TextCNN",
    "TextLinear",
    "TinySSD",
    "TokenClassifier",
    "Tree",
    "TripleModel",
    "UNet",
    "ViT",
    "Wav2Vec2",
    "WaveConvNet",
    "WaveNet",
    "Whisper",
    "WhitenedConvNet",
    "WholeGraphNet",
    "Word2Vec",
    "adapt",
    "adapted",
    "approximate",
    "approximate_with_relu",
    "best_spans",
    "cost_table",
    "filtered_ranks",
    "generate_wave",
    "generative",
    "implicit_als",
    "item_neighbours",
    "load_adapter",
    "mask_spans",
    "mask_tokens",
    "merge",
    "merge_weights",
    "packed",
    "random_walks",
    "rating_als",
    "replace_spans",
    "save_adapter",
    "speech_features",
    "step_bytes",
    "style_transfer",
    "train_only",
    "words",
]
