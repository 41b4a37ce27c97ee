"""Recurrent mixers."""

from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.bidirectional import Bidirectional
from wonderland.nn.mixers.causal_convolution import CausalConvolution
from wonderland.nn.mixers.echo_state import EchoState
from wonderland.nn.mixers.gru import GRU
from wonderland.nn.mixers.ligru import LiGRU
from wonderland.nn.mixers.lstm import LSTM
from wonderland.nn.mixers.rnn import RNN

CASES = {
    "rnn": lambda: RNN(8),
    "rnn, relu": lambda: RNN(8, activation="relu", state_size=5),
    "rnn with a readout": lambda: RNN(8, readout=True),
    "rnn without bias": lambda: RNN(8, bias=False),
    "lstm": lambda: LSTM(8),
    "lstm, another state size": lambda: LSTM(8, state_size=5),
    "lstm without bias": lambda: LSTM(8, bias=False),
    "gru": lambda: GRU(8),
    "gru, another state size": lambda: GRU(8, state_size=11),
    "gru without bias": lambda: GRU(8, bias=False),
    "gru, reset before": lambda: GRU(8, reset="before"),
    "gru, reset before, without bias": lambda: GRU(8, reset="before", bias=False, state_size=5),
    "ligru": lambda: LiGRU(8),
    "ligru, relu": lambda: LiGRU(8, activation="relu"),
    "ligru, as printed": lambda: LiGRU(8, activation="identity", state_size=5),
    "ligru without bias": lambda: LiGRU(8, bias=False),
    "echo state": lambda: EchoState(8, state_size=12),
    "echo state, leaky": lambda: EchoState(8, state_size=12, leak=0.3),
    "bidirectional lstm": lambda: Bidirectional(8),
    "bidirectional gru without bias": lambda: Bidirectional(8, mixer=GRU.spec(bias=False)),
    "bidirectional convolution": lambda: Bidirectional(8, mixer=CausalConvolution.spec(width=2)),
    "bidirectional mlp": lambda: Bidirectional(8, mixer=MLP.spec()),
}
