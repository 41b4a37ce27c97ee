"""Regular languages as constraints: regular expressions and JSON schemas to automata over bytes, advanced by tokens."""
