"""Opens what jigsaw-train wrote.

    run = jigsaw_train.open_run("runs/first")
    run.training()                              # pandas: loss, learning rate, … by step
    run.validation()                            # pandas: scores by step, variable and lead
    run.checkpoint()["encoder.weight"]          # numpy
    jigsaw_train.open_forecast("forecast.nc")   # xarray

The models as PyTorch modules are in jigsaw_train.models, which is imported when it is first asked for.
"""

import importlib

from jigsaw_train.checkpoint import Checkpoint, open_checkpoint
from jigsaw_train.run import Run, open_forecast, open_run

__all__ = ["Checkpoint", "Run", "open_checkpoint", "open_forecast", "open_run"]


def __getattr__(name):
    if name == "models":  # with PyTorch
        return importlib.import_module("jigsaw_train.models")
    raise AttributeError(f"module 'jigsaw_train' has no attribute {name!r}")
