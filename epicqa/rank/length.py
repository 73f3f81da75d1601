"""What a passage's length says for it: a longer sentence has room for more nuggets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MOST = 60
"""Words beyond which a sentence gains nothing more; longer ones are mostly lists and tables."""


def length_scores(question: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """log(1 + words), words counted up to ``MOST``, float64[n]."""
    return np.log1p([min(len(text.split()), MOST) for text in texts]).astype(np.float64)
