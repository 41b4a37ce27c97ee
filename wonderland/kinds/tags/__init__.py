"""Words with tags, and spans of running text."""
