"""Networks that look at images, each a short file built from the parts of nn."""
