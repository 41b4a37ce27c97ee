"""The proving ground: five small tasks that distinguish sequence mixers, and a table of which mixer solves which."""
