"""Made-up texts for the lab: reviews, pairs of sentences, tagged sentences, questions, and questions with the text that answers them."""

import json
from pathlib import Path

import numpy as np

GOOD = [f"good{i}" for i in range(40)]
BAD = [f"bad{i}" for i in range(40)]
PLAIN = [f"word{i}" for i in range(60)]
SYLLABLES = [
    "ber",
    "lin",
    "mon",
    "tar",
    "vik",
    "son",
    "ov",
    "ski",
    "del",
    "ra",
    "na",
    "port",
    "ton",
    "ham",
    "wick",
    "gard",
    "stein",
    "bach",
    "ley",
    "dor",
]


def name(draw: np.random.Generator, pieces: int = 2) -> str:
    """A made-up name."""
    return "".join(draw.choice(SYLLABLES, pieces)).capitalize()


def reviews(count: int, seed: int) -> tuple[list[list[str]], np.ndarray]:
    """Reviews whose few telling words are good or bad; `not` before one of them turns it round."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, count)
    texts = []
    for label in y:
        words = list(draw.choice(PLAIN, 10))
        for _ in range(3):
            turned = draw.random() < 0.3
            telling = draw.choice(GOOD if label ^ turned else BAD)
            place = int(draw.integers(0, len(words)))
            words[place:place] = ["not", telling] if turned else [telling]
        texts.append([str(word) for word in words])
    return texts, y


def entailment(path: Path, count: int, seed: int) -> Path:
    """Premises about who did what; hypotheses that follow, contradict, or say something else."""
    draw = np.random.default_rng(seed)
    people, acts = (
        ["man", "woman", "child", "doctor", "farmer", "painter"],
        ["runs", "sleeps", "sings", "reads", "eats", "works"],
    )
    places = ["park", "street", "house", "garden", "school", "market"]
    rows = []
    for _ in range(count):
        who, act, where = draw.choice(people), draw.choice(acts), draw.choice(places)
        label = draw.choice(["entailment", "contradiction", "neutral"])
        other = {
            "entailment": where,
            "contradiction": draw.choice([place for place in places if place != where]),
            "neutral": None,
        }[label]
        second = (
            f"the {who} is in the {other}"
            if other
            else f"the {who} {act} because of the {draw.choice(['rain', 'sun', 'cold', 'noise'])}"
        )
        rows.append(f"the {who} {act} in the {where} today\t{second}\t{label}")
    path.write_text("premise\thypothesis\tlabel\n" + "\n".join(rows))
    return path


def tagged(path: Path, count: int, seed: int) -> Path:
    """Names of people, places and firms that look alike and are told apart by the words around them."""
    draw = np.random.default_rng(seed)
    frames = [
        "PER was born in LOC .",
        "shares of ORG fell .",
        "ORG hired PER in LOC .",
        "the train to LOC left",
        "PER and PER met in LOC .",
    ]
    lines = []
    for _ in range(count):
        for word in draw.choice(frames).split():
            if word in ("PER", "LOC", "ORG"):
                pieces = [name(draw) for _ in range(int(draw.integers(1, 3)))]
                lines += [f"{piece} {'I' if i else 'B'}-{word}" for i, piece in enumerate(pieces)]
            else:
                lines.append(f"{word} O")
        lines.append("")
    path.write_text("\n".join(lines))
    return path


def questions(path: Path, count: int, seed: int) -> Path:
    """Texts of several facts, with questions in other words, some of which no fact answers (SQuAD 2)."""
    draw = np.random.default_rng(seed)
    facts = [("{0} was born in {1} .", "what is the birthplace of {0} ?"), ("{0} founded the firm {1} .", "which company did {0} start ?"),
             ("{0} married {1} .", "who is the spouse of {0} ?")]  # fmt: skip
    articles = []
    for i in range(count):
        said = [(facts[int(draw.integers(0, 3))], name(draw), name(draw)) for _ in range(4)]
        context, qas = "", []
        for j, ((fact, question), who, value) in enumerate(said):
            at = len(context) + fact.format(who, "\0").index("\0")
            context += fact.format(who, value) + " "
            absent = draw.random() < 0.2
            answers = [] if absent else [{"text": value, "answer_start": at}]
            qas.append(
                {
                    "id": f"{i}-{j}",
                    "question": question.format(name(draw) if absent else who),
                    "answers": answers,
                    "is_impossible": bool(absent),
                }
            )
        articles.append({"title": str(i), "paragraphs": [{"context": context.strip(), "qas": qas}]})
    path.write_text(json.dumps({"version": "v2.0", "data": articles}))
    return path


def matches(path: Path, count: int, seed: int) -> Path:
    """Queries and answers that share few words: each idea has a word on either side."""
    draw = np.random.default_rng(seed)
    ideas = 120
    rows = []
    for _ in range(count):
        own, extra = draw.choice(ideas, 4, replace=False), draw.choice(PLAIN, 6)
        query = " ".join([*(f"ask{i}" for i in own), *extra[:3]])
        text = " ".join([*(f"say{i}" for i in draw.permutation(own)), *extra[2:]])
        rows.append(f"{query}\t{text}")
    path.write_text("query\ttext\n" + "\n".join(rows))
    return path
