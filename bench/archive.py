"""Default fits of sets of the UCR and UEA archives, on their own test parts: accuracy and CPU seconds.

python -m bench.archive FOLDER [NAME ...]    # FOLDER holds NAME/NAME_TRAIN.ts and NAME/NAME_TEST.ts
"""

import sys
import tempfile
import time
from pathlib import Path

import wonderland

NAMES = ("GunPoint", "ArrowHead", "ItalyPowerDemand", "OSULeaf", "JapaneseVowels", "BasicMotions")


def main(folder: str, *names: str) -> None:
    accuracies = []
    for name in names or NAMES:
        files = [Path(folder) / name / f"{name}_{part}.ts" for part in ("TRAIN", "TEST")]
        begin = time.process_time()
        with tempfile.TemporaryDirectory() as place:
            run = wonderland.fit(files[0], test=files[1], out=Path(place) / "run", threads=1)
        accuracies.append(run.metrics["accuracy"])
        print(f"{name:18} accuracy {accuracies[-1]:.4f}, {time.process_time() - begin:.0f} CPU seconds", flush=True)
    print(f"{'mean':18} accuracy {sum(accuracies) / len(accuracies):.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
