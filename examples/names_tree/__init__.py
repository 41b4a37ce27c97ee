"""Names by a tree of letters: the WaveNet-like model of makemore's fifth part."""
