"""Tables that once went wrong, fitted from end to end."""

import numpy as np
import pandas as pd
import torch

import wonderland


def test_six_hundred_shops_are_all_learned(tmp_path):
    random = np.random.default_rng(0)
    shop, noise = random.integers(0, 600, 4000), random.normal(size=(4000, 4))
    sales = random.normal(size=600)[shop] + noise[:, :3] @ [0.5, -0.3, 0.2] + 0.3 * noise[:, 3]
    frame = pd.DataFrame(
        {"shop": [f"s{i}" for i in shop], "a": noise[:, 0], "b": noise[:, 1], "c": noise[:, 2], "sales": sales}
    )
    run = wonderland.fit(frame.iloc[:3200], "sales", test=frame.iloc[3200:], out=tmp_path / "run", threads=1)
    assert run.metrics["rmse"] < 1.05 * one_hot_ridge(frame)


def one_hot_ridge(frame: pd.DataFrame) -> float:
    """RMSE of ridge regression with a penalty of 1 on one-hot shops and the numbers, on the rows from 3200."""
    x = np.concatenate([pd.get_dummies(frame["shop"]).to_numpy(float), frame[["a", "b", "c"]].to_numpy()], 1)
    y, train = frame["sales"].to_numpy(), slice(0, 3200)
    weights = np.linalg.solve(x[train].T @ x[train] + np.eye(x.shape[1]), x[train].T @ y[train])
    return float(np.sqrt(np.mean((x[3200:] @ weights - y[3200:]) ** 2)))


def test_a_column_of_names_does_not_hurt(tmp_path):
    random = np.random.default_rng(1)
    numbers = random.normal(size=(300, 4))
    frame = pd.DataFrame(numbers, columns=list("abcd"))
    frame["y"] = numbers @ [1.0, 2.0, -1.0, 0.5] + 0.3 * random.normal(size=300)
    makers = [f"maker{i}" for i in range(30)]
    frame["name"] = [f"{random.choice(makers)} type{random.integers(60)}" for _ in range(300)]
    with_name = wonderland.fit(frame, "y", out=tmp_path / "with", threads=1).metrics["rmse"]
    without = wonderland.fit(frame.drop(columns="name"), "y", out=tmp_path / "without", threads=1).metrics["rmse"]
    assert with_name < 1.1 * without


def test_words_of_a_text_column_decide_the_class(tmp_path):
    random = np.random.default_rng(2)
    topics = {"sport": "match goal team player", "trade": "bank stock price market"}
    other = [f"word{i}" for i in range(200)]
    labels = random.choice(list(topics), 300)
    texts = [" ".join([*random.choice(topics[label].split(), 2), *random.choice(other, 8)]) for label in labels]
    titles = [" ".join(random.choice(other, 4)) for _ in labels]
    frame = pd.DataFrame({"title": titles, "text": texts, "size": random.normal(size=300), "label": labels})
    run = wonderland.fit(frame, "label", kind="table", out=tmp_path / "run", threads=1)
    assert run.metrics["accuracy"] > 0.85


def test_a_set_holds_the_predicted_class_unless_it_is_empty(tmp_path):
    random = np.random.default_rng(3)
    frame = pd.DataFrame(random.normal(size=(200, 5)), columns=list("abcde"))
    frame["y"] = random.choice(["x", "y", "z"], 200)
    run = wonderland.fit(frame, "y", out=tmp_path / "run", threads=1, steps=60)
    for level in (0.3, 0.6, 0.9):
        table = run.predict(frame, level=level)
        assert all(row.prediction in row.set or not row.set for row in table.itertuples())


def test_a_blend_has_linear_members_that_are_weighted_by_held_out_rows(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd"))
    frame["y"] = frame["a"] - 2 * frame["b"] + 0.3 * rng.normal(size=120)
    run = wonderland.fit(frame, "y", blend=True, out=tmp_path / "run", steps=60)
    assert run.recipe.model.arguments["linear"] == [False, False, True] * 5
    assert run.trust.shares[2] > 0.2
    again = wonderland.load(tmp_path / "run")
    pd.testing.assert_frame_equal(again.predict(frame), run.predict(frame))
    x = run.encoder.encode(run.encoder.open(frame))
    outputs = run.model.eval()(x)[2]
    numbers = torch.cat([x, torch.ones(len(x), 1)], 1).double()
    residual = outputs.double() - numbers @ torch.linalg.lstsq(numbers, outputs.double()).solution
    assert residual.abs().max() < 1e-4
