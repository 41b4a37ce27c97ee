"""Sentiment, entailment, tags, answers and retrieval on made-up texts."""
