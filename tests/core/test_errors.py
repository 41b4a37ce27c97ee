import pytest

from wonderland.core import WonderlandError, nearest, need


def test_nearest_offers_up_to_three_and_ignores_case():
    assert nearest("Specis", ["species", "island"]) == " Did you mean 'species'?"
    assert nearest("ag", ["age", "aged"]) == " Did you mean 'age' or 'aged'?"
    assert nearest("colour", ["price"]) == ""


def test_a_missing_extra_says_how_to_get_it():
    with pytest.raises(WonderlandError) as caught:
        need("no_such_package.sub", extra="parquet", why="to read Parquet files")
    assert str(caught.value) == "no_such_package is needed to read Parquet files: pip install 'wonderland[parquet]'."


def test_an_error_is_a_value_error():
    assert issubclass(WonderlandError, ValueError)
