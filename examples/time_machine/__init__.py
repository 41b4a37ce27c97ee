"""The Time Machine, letter by letter: the recurrent language models of D2L."""
