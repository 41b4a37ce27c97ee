"""Questions about texts, whose answers stand in them."""
