"""Graphs: nodes and edges, or many graphs, with a class or a number to learn for nodes, links or whole graphs."""
