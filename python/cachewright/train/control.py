"""What another learner makes of the same requests and labels: a control of caching models.

For: telling whether a network learns too little or its inputs say too little. Must never know: how
networks learn. Gradient-boosted trees of scikit-learn (the extra `train`) see the features of the
request alone, no state, no labels fed back; all requests that train count alike. Deterministic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachewright._native import SpecError
from cachewright.train.caching_course import Course
from cachewright.train.labelled import Lessons
from cachewright.train.labelling import FED_BACK, NO_DURATION
from cachewright.train.networks import EXTRA
from cachewright.train.rc_rnn_training import RcRnnTraining
from cachewright.train.reports import Control

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROUNDS, LEAVES = 100, 31


def trees(lessons: Lessons, how: RcRnnTraining) -> Control:
    """Return how often boosted trees say what the oracle does later, and what their labels hit.

    Errors: `SpecError` without scikit-learn, or where a network could not be trained either.
    """
    import numpy as np

    course = Course.of(lessons, how)
    said = _learned(lessons, slice(course.begin, course.middle))
    later = slice(course.end, len(lessons.cached))
    cached = lessons.duration[later] != NO_DURATION
    lasting = said[later, 1][cached] == lessons.duration[later][cached]
    return Control(
        cached=float(np.mean(said[later, 0] == lessons.cached[later])),
        duration=float(np.mean(lasting)) if len(lasting) else 0.0,
        says_cached=float(np.mean(said[later, 0])),
        hits=course.hit_ratios(said).later,
    )


def _learned(lessons: Lessons, train: slice) -> NDArray[np.uint8]:
    """Return the labels that trees give to every request [request, 2]."""
    import numpy as np

    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise SpecError(f"the control needs scikit-learn, which is not here; {EXTRA}") from None
    # The durations and, last, what is not cached: one label of four.
    rows, labels = lessons.rows[:, :-FED_BACK], lessons.duration
    grown = HistGradientBoostingClassifier(
        max_iter=ROUNDS, max_leaf_nodes=LEAVES, early_stopping=False, random_state=1
    )
    grown.fit(rows[train], labels[train])
    found = np.asarray(grown.predict(rows))
    lasts = np.minimum(found, NO_DURATION - 1)
    return np.stack([found != NO_DURATION, lasts], axis=1).astype(np.uint8)
