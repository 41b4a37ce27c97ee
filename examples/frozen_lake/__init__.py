"""FrozenLake: planning in a known process, and learning from episodes."""
