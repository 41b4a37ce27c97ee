"""Blocks: one idea a file."""

from wonderland.nn.convolution import ResidualConvolution
from wonderland.nn.members import MemberDropout, MemberEmbeddings, MemberLinear, PeriodicNumbers

__all__ = ["MemberDropout", "MemberEmbeddings", "MemberLinear", "PeriodicNumbers", "ResidualConvolution"]
