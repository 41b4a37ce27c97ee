"""Character-level recurrent language models of The Time Machine, as in D2L."""
