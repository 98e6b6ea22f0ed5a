"""Opens what jigsaw-train wrote.

    run = jigsaw_train.open_run("runs/first")
    run.training()                              # pandas: loss, learning rate, … by step
    run.validation()                            # pandas: scores by step, variable and lead
    run.checkpoint()["encoder.weight"]          # numpy
    jigsaw_train.open_forecast("forecast.nc")   # xarray

The models as PyTorch modules are in jigsaw_train.models.
"""

from jigsaw_train.checkpoint import Checkpoint, open_checkpoint
from jigsaw_train.run import Run, open_forecast, open_run

__all__ = ["Checkpoint", "Run", "open_checkpoint", "open_forecast", "open_run"]
