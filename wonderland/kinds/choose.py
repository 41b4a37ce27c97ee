"""Choose the kind of data of a source by the confidence of each kind's claim, and open it."""

from collections.abc import Mapping
from typing import Any

from wonderland.core import WonderlandError, nearest
from wonderland.core.options import described, make, tidy
from wonderland.data.dataset import Dataset
from wonderland.data.reading import Reading
from wonderland.data.source import Glimpse
from wonderland.kinds.kind import Kind

TIE = 0.02  # claims whose confidence differs by less are a tie


def open(
    source: Any, target: str | None = None, *, kind: str | None = None, test: Any = None, **options: Any
) -> Dataset:
    """Open data of any kind, infer its columns and target, and list repairs in `findings`.

    `source` is a path (CSV, JSON, Parquet, Feather, a workbook, a SQLite file, text, a folder), the URL of a database, a pandas or polars frame, a dict of columns, arrays
    `(X, y)`, or the name of a bundled set. `test` is a second source whose rows are kept for the test. `kind` names the kind
    of data where it is not inferred right; the options are those of the kind.

    >>> data = open("iris")
    >>> len(data), data.task, data.classes
    (150, 'multiclass', ['setosa', 'versicolor', 'virginica'])
    """
    from wonderland.kinds import KINDS

    if isinstance(source, Dataset):
        raise WonderlandError("This is already an open dataset. Give the source it was opened from.")
    asked = {name: value for name, value in options.items() if value is not None}
    if target is not None:
        asked["target"] = target
    reading = Reading.of(asked)
    glimpse, test_glimpse = Glimpse(source, reading=reading), None if test is None else Glimpse(test, reading=reading)
    chosen = choose(glimpse, kind, asked | ({} if test is None else {"test": test}), KINDS)
    return open_as(chosen, glimpse, make_options(chosen, asked, glimpse.name, KINDS), test_glimpse)


def open_as(kind: Kind, glimpse: Glimpse, options: Any, test: Glimpse | None) -> Dataset:
    """Open a source as the chosen kind; the dataset keeps its options."""
    dataset = kind.open(glimpse, options, test)
    if test is not None and dataset.test_rows is None:
        raise WonderlandError(
            f"A test set of its own is not read for {kind.name}: leave test (--test) out, or give a share of the data."
        )
    if test is not None and dataset.assigned is not None:
        raise WonderlandError("split (--split) names the test rows, and so does test (--test): give one of them.")
    dataset.options = options
    return dataset


def choose(glimpse: Glimpse, name: str | None, asked: Mapping[str, Any], kinds: Mapping[str, Kind]) -> Kind:
    """The kind that was named, or the one whose claim has the highest confidence."""
    if name is not None:
        if name not in kinds:
            raise WonderlandError(
                f"There is no kind {name!r}.{nearest(str(name), kinds)} Known are {', '.join(kinds)}."
            )
        return kinds[name]
    asked = {**asked, **_column_options(asked, kinds)}
    claims = [(claim, kind) for kind in kinds.values() if (claim := kind.claims(glimpse, asked)) is not None]
    claims.sort(key=lambda pair: -pair[0].confidence)
    if not claims:
        contents = glimpse.contents  # a source that cannot be read at all raises its own error here
        raise WonderlandError(f"{contents.name} matches no kind of data: name one with kind ({', '.join(kinds)}).")
    if len(claims) > 1 and claims[0][0].confidence - claims[1][0].confidence < TIE:
        reasons = "; ".join(f"{kind.name}: {claim.reason}" for claim, kind in claims[:2])
        raise WonderlandError(f"{glimpse.name} could be read in two ways ({reasons}). Name one with kind (--kind).")
    return claims[0][1]


def _column_options(asked: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, tuple[str, ...]]:
    """The options that name columns, checked: `claims` reads them before a kind is chosen."""
    options = {name: option for kind in kinds.values() for name, option in described(kind.Options).items()
             if tuple in option.types and name in asked}  # fmt: skip
    columns = {name: tidy(asked[name], option) for name, option in options.items()}
    for name, value in columns.items():
        options[name].check(value)
    return columns


def make_options(kind: Kind, asked: Mapping[str, Any], name: str, kinds: Mapping[str, Kind]) -> Any:
    """The options of a kind from those given; an option that it does not have is refused, with the kinds that have it."""
    known = described(kind.Options)
    for option in asked:
        if option in known:
            continue
        owners = [other.name for other in kinds.values() if option in described(other.Options)]
        if owners:
            listed = " and ".join(filter(None, (", ".join(owners[:-1]), owners[-1])))
            raise WonderlandError(
                f"{option} is an option of {listed}, and {name} is read as {kind.name}: leave it out, or name another kind "
                "with kind (--kind)."
            )
        raise WonderlandError(f"There is no option {option!r} for {kind.name}.{nearest(option, known)}")
    return make(kind.Options, asked)
