"""`python -m tests.fuzz.repeat NUMBER ...`: run cases again, and show what was mutated and how each ended."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.worker import run_case

if __name__ == "__main__":
    with TemporaryDirectory() as home:
        for number in sys.argv[1:]:
            print(json.dumps(run_case(int(number), Path(home)), indent=2))
