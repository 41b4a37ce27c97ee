"""BERT's and T5's pretraining on a small made-up language."""
