"""The proving ground: five small tasks that tell sequence mixers apart, and one table of who solves which."""
