"""Checkpoints and safetensors files as whole numpy arrays (docs/checkpoints.md)."""

import collections.abc
import json
import pathlib

import h5py
import numpy as np

try:
    import xxhash
except ImportError:  # without it pieces are read unverified
    xxhash = None


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

        They have no view: the pieces are put together from the shards, and their digests are compared where the
        module xxhash is there.
        """
        return {
            name.split("/", 1)[1]: self._assembled(number, dtype, shape)
            for number, (name, dtype, shape) in enumerate(self.manifest["tensors"])
            if name.startswith(kind + "/")
        }

    def _assembled(self, tensor, dtype, shape):
        whole = np.empty(shape, {"fp32": "<f4", "fp64": "<f8"}[dtype])
        held = np.zeros(shape, bool)
        for shard in self.manifest["shards"]:
            name = _plain_name(shard["name"], self.folder / "manifest.json")
            with open(self.folder / name, "rb") as file:
                for number, begin, extent, offset, digest in shard["pieces"]:
                    if number != tensor:
                        continue
                    where = f"{self.folder / name}: a piece of {self.manifest['tensors'][tensor][0]}"
                    if not len(begin) == len(extent) == len(shape) or not all(
                        0 <= b and 0 < e <= n - b for b, e, n in zip(begin, extent, shape)
                    ):
                        raise ValueError(f"{where} does not lie in the tensor: {begin}, {extent} of {list(shape)}")
                    file.seek(offset)
                    count = int(np.prod(extent, dtype=np.int64))
                    data = file.read(count * whole.itemsize)
                    if len(data) != count * whole.itemsize:
                        raise ValueError(f"{where} lies outside of the file")
                    if xxhash and xxhash.xxh64(data).hexdigest() != digest:
                        raise ValueError(f"{where} is damaged: its digest is not {digest}")
                    box = tuple(slice(b, b + e) for b, e in zip(begin, extent))
                    if held[box].any():
                        raise ValueError(f"{where} overlaps another one")
                    held[box] = True
                    whole[box] = np.frombuffer(data, whole.dtype).reshape(extent)
        if not held.all():
            name, missing = self.manifest["tensors"][tensor][0], int((~held).sum())
            raise ValueError(f"{self.folder / 'manifest.json'} has no piece with {missing} numbers of {name}")
        return whole


def _plain_name(name, where):
    """The name of something in a checkpoint's own folder; nothing there points out of it."""
    if name in ("", ".", "..") or "/" in name:
        raise ValueError(f'{where} names "{name}", which is no plain name')
    return name


def open_checkpoint(path, average=False):
    """path: a checkpoint's folder, a folder of checkpoints or a run directory (then its newest)."""
    path = pathlib.Path(path)
    for folder in (path, path / "checkpoints"):
        if (folder / "manifest.json").exists():
            return Checkpoint(folder, average)
        if (folder / "latest").exists():
            name = _plain_name((folder / "latest").read_text().strip(), folder / "latest")
            return Checkpoint(folder / name, average)
    raise FileNotFoundError(f"{path} is neither a checkpoint nor a run directory with one")
