"""A small GPT writes like Shakespeare, letter by letter: nanoGPT's recipe for a laptop."""
