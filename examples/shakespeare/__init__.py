"""A character-level GPT on Shakespeare: nanoGPT's recipe for a laptop."""
