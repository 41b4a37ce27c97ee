"""The labs of the books: scripts that state target numbers, print what they measure, and fail below them."""
