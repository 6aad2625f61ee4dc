"""Trainers of separations that learn, and models of other stages made offline.

For: `Window`, `Trainer`, `train_shiro`, `train_icache`, `train_mlcache`, `train_kinds`,
`train_rc_rnn`, and who trains by name.
Must never know: how a scheme uses a model. A trainer is called at each window border with what that
window teaches, from a thread of the run, and returns a model file's bytes (docs/model-file.md).
What it raises costs the window: the model before stays in use, and the result says so. Each name is
imported when first used, since most of them need numpy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# The function, not the module of its name.
from cachewright.train.model_file import Normalisation, model_file

if TYPE_CHECKING:
    from cachewright.train.by_name import TRAINERS, hand_out
    from cachewright.train.icache import ICacheTraining, judged_icache, train_icache
    from cachewright.train.kinds import KindsTraining, train_kinds
    from cachewright.train.labelled import caching_lessons
    from cachewright.train.mlcache import MLCacheTraining, train_mlcache
    from cachewright.train.offline import Trained, train_shiro
    from cachewright.train.rc_rnn import train_rc_rnn
    from cachewright.train.rc_rnn_training import RcRnnTraining
    from cachewright.train.shiro import JaxTrainer
    from cachewright.train.store import Trainings
    from cachewright.train.window import CONTEXT, LONG, SHORT, Trainer, Window

__all__ = [
    "CONTEXT",
    "LONG",
    "SHORT",
    "TRAINERS",
    "ICacheTraining",
    "JaxTrainer",
    "KindsTraining",
    "MLCacheTraining",
    "Normalisation",
    "RcRnnTraining",
    "Trained",
    "Trainer",
    "Trainings",
    "Window",
    "caching_lessons",
    "hand_out",
    "judged_icache",
    "model_file",
    "train_icache",
    "train_kinds",
    "train_mlcache",
    "train_rc_rnn",
    "train_shiro",
]

_HOMES = {
    "CONTEXT": "window",
    "LONG": "window",
    "SHORT": "window",
    "TRAINERS": "by_name",
    "ICacheTraining": "icache",
    "JaxTrainer": "shiro",
    "KindsTraining": "kinds",
    "MLCacheTraining": "mlcache",
    "RcRnnTraining": "rc_rnn_training",
    "Trained": "offline",
    "Trainer": "window",
    "Trainings": "store",
    "Window": "window",
    "caching_lessons": "labelled",
    "hand_out": "by_name",
    "judged_icache": "icache",
    "train_icache": "icache",
    "train_kinds": "kinds",
    "train_mlcache": "mlcache",
    "train_rc_rnn": "rc_rnn",
    "train_shiro": "offline",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cachewright.train' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"cachewright.train.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
