"""Layers of graphs: `layer(x, graph)` for features of nodes (n, d) and a `wonderland.core.graph.Graph`."""

from wonderland.core.graph import Graph
from wonderland.core.pattern import SparseRows
from wonderland.nn.graph.attention import GAT, GATv2
from wonderland.nn.graph.convolution import GraphConvolution, NeighbourConvolution, TrainableAdjacency
from wonderland.nn.graph.drop_edge import DropEdge
from wonderland.nn.graph.encodings import (
    DegreeEmbedding,
    anchor_encoding,
    flip,
    laplacian_encoding,
    random_walk_encoding,
)
from wonderland.nn.graph.gated import GatedGraph
from wonderland.nn.graph.implicit import ImplicitGraph
from wonderland.nn.graph.isomorphism import GIN, GINE
from wonderland.nn.graph.jumping import JumpingKnowledge
from wonderland.nn.graph.layer import GraphLayer
from wonderland.nn.graph.message_passing import EdgeNetwork, EdgeUpdate, MessagePassing
from wonderland.nn.graph.norms import GraphNorm, PairNorm
from wonderland.nn.graph.polynomial import Chebyshev, PolynomialConvolution
from wonderland.nn.graph.pooling import ClusterPooling, TopKPooling
from wonderland.nn.graph.principal import PNA
from wonderland.nn.graph.propagation import (
    PersonalisedPropagation,
    diffuse,
    label_propagation,
    manifold_penalty,
    similarity_graph,
)
from wonderland.nn.graph.readout import AttentionReadout, Readout, Set2Set
from wonderland.nn.graph.sage import GraphSAGE
from wonderland.nn.graph.sampling import clusters, in_blocks, sample_neighbours
from wonderland.nn.graph.spatio_temporal import SpatioTemporal
from wonderland.nn.graph.transformer import GPS, EdgeAttention, NodeAttention
from wonderland.nn.graph.virtual_node import VirtualNode

__all__ = [
    "GAT",
    "GIN",
    "GINE",
    "GPS",
    "PNA",
    "AttentionReadout",
    "Chebyshev",
    "ClusterPooling",
    "DegreeEmbedding",
    "DropEdge",
    "EdgeAttention",
    "EdgeNetwork",
    "EdgeUpdate",
    "GATv2",
    "GatedGraph",
    "Graph",
    "GraphConvolution",
    "GraphLayer",
    "GraphNorm",
    "GraphSAGE",
    "ImplicitGraph",
    "JumpingKnowledge",
    "MessagePassing",
    "NeighbourConvolution",
    "NodeAttention",
    "PairNorm",
    "PersonalisedPropagation",
    "PolynomialConvolution",
    "Readout",
    "Set2Set",
    "SparseRows",
    "SpatioTemporal",
    "TopKPooling",
    "TrainableAdjacency",
    "VirtualNode",
    "anchor_encoding",
    "clusters",
    "diffuse",
    "flip",
    "in_blocks",
    "label_propagation",
    "laplacian_encoding",
    "manifold_penalty",
    "random_walk_encoding",
    "sample_neighbours",
    "similarity_graph",
]
