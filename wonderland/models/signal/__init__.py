"""Models of signals: recordings as waves or spectra, and series of sensors, with a class or a number each."""

from wonderland.models.signal.inception_time import InceptionTime
from wonderland.models.signal.mel_convnet import MelConvNet
from wonderland.models.signal.recogniser import Recogniser
from wonderland.models.signal.rocket import Rocket
from wonderland.models.signal.signal_model import SignalModel
from wonderland.models.signal.spectrogram_transformer import SpectrogramTransformer
from wonderland.models.signal.wave_convnet import WaveConvNet
from wonderland.models.signal.wavenet import WaveNet, generate_wave

__all__ = [
    "InceptionTime",
    "MelConvNet",
    "Recogniser",
    "Rocket",
    "SignalModel",
    "SpectrogramTransformer",
    "WaveConvNet",
    "WaveNet",
    "generate_wave",
]
