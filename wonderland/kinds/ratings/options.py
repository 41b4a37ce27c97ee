"""Options of ratings."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.options import KindOptions

GOALS = ("ranking", "rating")


@dataclass(frozen=True)
class Options(KindOptions):
    """Ratings or clicks: a column of users, one of items, and if there are, ratings and times. Learns what to recommend."""

    user: str | None = option(help="the column of users (default: by its name)", metavar="COLUMN")
    item: str | None = option(help="the column of items (default: by its name)", metavar="COLUMN")
    rating: str | None = option(help="the column of ratings (default: by its name)", metavar="COLUMN")
    when: str | None = option(
        help="the column of times (default: by its name; else the order of the rows)", metavar="COLUMN"
    )
    goal: str | None = option(help="rank items for users (default), or predict ratings", choices=GOALS)
    history: int | None = option(help="how many earlier items of a user are read (default 50)", least=0, most=10_000)


@dataclass(frozen=True)
class PredictOptions:
    """What can be said to predict for a run of this kind."""

    top: int = option(10, help="how many items are recommended to each user", least=1, most=1000)
