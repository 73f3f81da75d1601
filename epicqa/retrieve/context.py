"""What a sentence's neighbours say for it."""

from __future__ import annotations

import numpy as np

from epicqa.corpus.store import CorpusStore
from epicqa.ranking import Ranking
from epicqa.retrieve.fuse import min_max


def support(ranking: Ranking, store: CorpusStore, weight: float) -> Ranking:
    """Sentences by their own score and, at ``weight``, the mean score of the others in their context.

    A sentence that answers seldom stands alone: a paragraph on the question lifts all that it says. Scores
    are mapped to 0..1 first; a sentence that was not retrieved counts 0, and one alone in its context gains
    nothing.

    Args:
        ranking: single sentences, best first.
        store: their corpus.
        weight: 0 leaves the order as it is.
    """
    if not weight or not len(ranking):
        return ranking
    score = min_max(ranking)
    context, place = np.unique(store.sentence_context[ranking.first], return_inverse=True)
    total = np.bincount(place, score)
    others = store.context_first[context + 1] - store.context_first[context] - 1
    mean = (total[place] - score) / np.maximum(others[place], 1)
    return Ranking.sort(ranking.first, ranking.last, (score + weight * mean).astype(np.float32))
