"""Regular sets of texts: read from expressions and JSON schemas, turned into automata over bytes, walked by tokens."""
