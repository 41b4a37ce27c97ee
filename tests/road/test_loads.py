"""Weights are read once: those of a checkpoint before training, those of the finished model after it."""

import wonderland
from tests.golden.runs import Sources
from wonderland import checkpoints
from wonderland.road import stages


def test_a_fit_reads_the_checkpoint_once_and_the_finished_model_once(tmp_path, monkeypatch):
    sources, read = Sources(tmp_path / "sources"), {"checkpoint": 0, "model": 0}

    def counted(name, call):
        def once_more(*given, **named):
            read[name] += 1
            return call(*given, **named)

        return once_more

    start = sources.checkpoint()
    monkeypatch.setattr(checkpoints, "load_classifier", counted("checkpoint", checkpoints.load_classifier))
    monkeypatch.setattr(stages, "load_model", counted("model", stages.load_model))
    wonderland.fit(sources.folder / "reviews.csv", start=start, method="lora", steps=2, out=tmp_path / "run")
    assert read == {"checkpoint": 1, "model": 1}
