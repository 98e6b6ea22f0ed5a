"""Checkpoints and safetensors files as whole numpy arrays (docs/checkpoints.md)."""

import collections.abc
import json
import pathlib

import h5py
import numpy as np


class Checkpoint(collections.abc.Mapping):
    """The parameters of a checkpoint by name, read when asked for; what else it holds as attributes.

    A parameter is whole whatever mesh saved it: parameters.h5 has one virtual data set for each.
    """

    def __init__(self, folder, average=False):
        """folder: of one checkpoint. average: the moving average of the parameters in their place."""
        self.folder = pathlib.Path(folder)
        self.manifest = json.loads((self.folder / "manifest.json").read_text())
        self._file = self.folder / ("average.h5" if average else "parameters.h5")
        if not self._file.exists():
            raise FileNotFoundError(f"{self.folder} holds no moving average; train with optimizer.ema_decay")
        self._shapes = {
            name.split("/", 1)[1]: tuple(shape)
            for name, _, shape in self.manifest["tensors"]
            if name.startswith("parameters/")
        }

    def __getitem__(self, name):
        with h5py.File(self._file) as file:
            return file[name][...]

    def __iter__(self):
        return iter(self._shapes)

    def __len__(self):
        return len(self._shapes)

    def __repr__(self):
        numbers = sum(int(np.prod(shape, dtype=np.int64)) for shape in self._shapes.values())
        return f"Checkpoint({str(self.folder)!r}: step {self.step}, {len(self)} tensors, {numbers} numbers)"

    @property
    def step(self):
        """Updates made."""
        return self.manifest["step"]

    @property
    def configuration(self):
        """The resolved configuration that it was trained with."""
        return self.manifest["extra"]["configuration"]

    @property
    def statistics(self):
        """By field: mean, deviation and increment_deviation, in its unit (docs/statistics.md)."""
        return self.manifest["extra"]["statistics"]["fields"]

    @property
    def grid(self):
        """Points along each spatial axis of the data."""
        return tuple(self.manifest["extra"]["data"]["grid"])

    @property
    def channels(self):
        """Names of the model's input channels, then of its targets, in their order (docs/formulas.md)."""
        return list(self.manifest["extra"]["data"]["channels"])

    def optimizer(self, kind):
        """What the optimizer keeps of each parameter, such as "adamw.moment1": whole arrays by name.

        They have no view: the pieces are put together from the shards.
        """
        return {
            name.split("/", 1)[1]: self._assembled(number, dtype, shape)
            for number, (name, dtype, shape) in enumerate(self.manifest["tensors"])
            if name.startswith(kind + "/")
        }

    def _assembled(self, tensor, dtype, shape):
        whole = np.empty(shape, {"fp32": "<f4", "fp64": "<f8"}[dtype])
        for shard in self.manifest["shards"]:
            with open(self.folder / shard["name"], "rb") as file:
                for number, begin, extent, offset, _ in shard["pieces"]:
                    if number != tensor:
                        continue
                    file.seek(offset)
                    count = int(np.prod(extent, dtype=np.int64))
                    piece = np.frombuffer(file.read(count * whole.itemsize), whole.dtype).reshape(extent)
                    whole[tuple(slice(b, b + e) for b, e in zip(begin, extent))] = piece
        return whole


def open_checkpoint(path, average=False):
    """path: a checkpoint's folder, a folder of checkpoints or a run directory (then its newest)."""
    path = pathlib.Path(path)
    for folder in (path, path / "checkpoints"):
        if (folder / "manifest.json").exists():
            return Checkpoint(folder, average)
        if (folder / "latest").exists():
            return Checkpoint(folder / (folder / "latest").read_text().strip(), average)
    raise FileNotFoundError(f"{path} is neither a checkpoint nor a run directory with one")
