"""What the JSON files of a run folder must hold: config.json, and what trust.json says of the test part.

The recipe in config.json is checked by `Recipe.from_json`, the calibration in trust.json by the task, and preprocess.json by the
encoder of its kind of data.
"""

from wonderland.core.schema import Schema, entries, items, number, one_of, optional, text, values, whole

CONFIG: Schema = entries(
    {
        "source": entries(
            {
                "kind": text,
                "origin": entries(
                    {}, {"path": text, "bundled": text, "url": text, "own": text, "test": optional(values(text))}
                ),
                "fingerprint": text,
                "findings": items(text, most=100_000),
            },
            {"name": text, "rows": whole()},
        ),
        "request": entries({}, {"kind": optional(text)}),
        "recipe": entries({}),
        "split": entries({"digest": text}, {"note": text}),
        "seed": whole(),
        "device": one_of("cpu", "cuda", "mps"),
        "threads": whole(1, 1024),
        "level": number(1e-9, 1 - 1e-9),
    },
    {"preprocessing": text, "versions": values(text)},
)

_BINS = items(
    entries({"confidence": optional(number()), "accuracy": optional(number()), "count": whole()}), most=10_000
)
EVALUATION: Schema = entries(
    {
        "rows": whole(),
        "metrics": values(optional(number())),
        "conformal": entries(
            {},
            {
                "level": number(0, 1),
                "coverage": optional(number(0, 1)),
                "note": text,
                "mean_size": optional(number(0)),
                "mean_width": optional(number(0)),
                "empty": optional(whole()),
                "sizes": values(whole()),
                "worst": optional(entries({"name": text, "coverage": number(0, 1), "rows": whole()})),
                "worst_group": entries({"name": text, "coverage": number(0, 1), "rows": whole(), "of": text}),
            },
        ),
    },
    {
        "most_frequent": optional(entries({"class": text, "share": number(0, 1)})),
        "ece": entries({"before": optional(number()), "after": optional(number())}),
        "reliability": values(_BINS),
        "pairs": whole(),
        "bytes": whole(),
        "calibrated_loss": optional(number()),
    },
)
TRUST: Schema = entries({"measured": entries({"test": EVALUATION})})
