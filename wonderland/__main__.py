"""`python -m wonderland VERB ...`: the command line where its script is not on the path."""

import sys

from wonderland.cli.main import main

sys.exit(main())
