"""Makes the benchmarks importable: they stand beside the package and are not installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
