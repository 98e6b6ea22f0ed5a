"""Checkpoints as whole numpy arrays (docs/checkpoints.md)."""

import collections.abc
import json
import pathlib

import numpy as np

try:
    import xxhash
except ImportError:  # without it bytes are read unverified
    xxhash = None

POINTERS = ("latest", "best")  # files among checkpoints, each with the name of one


class Checkpoint(collections.abc.Mapping):
    """The parameters of a checkpoint by name, read when asked for; what else it holds as attributes.

    Arrays are whole whatever mesh saved them: they are put together from the shards. Where the module xxhash is
    there, digests are compared of all that is read; ValueError of a file that is damaged.
    """

    def __init__(self, folder, average=None):
        """folder: of one checkpoint. average: True for the moving average of the parameters in their place, False
        for the parameters themselves, None for the average where there is one, as `jigsaw-train predict` has it.

        FileNotFoundError, ValueError: a file that the manifest names is missing, has another size.
        """
        self.folder = pathlib.Path(folder)
        self.manifest = _read_manifest(self.folder / "manifest.json")
        self._tensors = {}  # numbers by kind and name
        for number, (tensor, _, _) in enumerate(self.manifest["tensors"]):
            kind, name = tensor.split("/", 1)
            self._tensors.setdefault(kind, {})[name] = number
        self._pieces = {}  # by number of the tensor and file
        for shard in self.manifest["shards"]:
            path = self._whole_file(shard)
            for number, *piece in shard["pieces"]:
                self._pieces.setdefault(number, {}).setdefault(path, []).append(piece)
        for view in self.manifest["views"]:
            self._whole_file(view)
        has_average = "average" in self._tensors
        if average and not has_average:
            raise FileNotFoundError(f"{self.folder} holds no moving average; train with optimizer.ema_decay")
        self.average = has_average if average is None else average
        self._parameters = self._tensors["average" if self.average else "parameters"]

    def __getitem__(self, name):
        return self._assembled(self._parameters[name])

    def __iter__(self):
        return iter(self._parameters)

    def __len__(self):
        return len(self._parameters)

    def __repr__(self):
        shapes = (self.manifest["tensors"][number][2] for number in self._parameters.values())
        numbers = sum(int(np.prod(shape, dtype=np.int64)) for shape in shapes)
        averaged = ", averaged" if self.average else ""
        return f"Checkpoint({str(self.folder)!r}: step {self.step}, {len(self)} tensors, {numbers} numbers{averaged})"

    @property
    def step(self):
        """Updates made."""
        return self.manifest["step"]

    @property
    def configuration(self):
        """The resolved configuration that it was trained with."""
        return self._of_run("configuration")

    @property
    def statistics(self):
        """By field: mean, deviation and increment_deviation, in its unit (docs/statistics.md)."""
        return self._of_run("statistics")["fields"]

    @property
    def grid(self):
        """Points along each spatial axis of the data."""
        return tuple(self._of_run("data")["grid"])

    @property
    def channels(self):
        """Names of the model's input channels, then of its targets, in their order (docs/formulas.md)."""
        return list(self._of_run("data")["channels"])

    def optimizer(self, kind):
        """What the optimizer keeps of each parameter, such as "adamw.moment1": whole arrays by name."""
        kept = {kind: names for kind, names in self._tensors.items() if kind not in ("parameters", "average")}
        if kind not in kept:
            raise ValueError(f"{self.folder} holds no {kind!r} of an optimizer but {', '.join(kept) or 'nothing'}")
        return {name: self._assembled(number) for name, number in kept[kind].items()}

    def _of_run(self, key):
        if key not in self.manifest["extra"]:
            raise ValueError(
                f"{self.folder} holds no {key}, as it was imported; take that of the run whose model it is, as with "
                "models.load(checkpoint, run)"
            )
        return self.manifest["extra"][key]

    def _whole_file(self, record):
        path = self.folder / _plain_name(record["name"], self.folder / "manifest.json")
        size = path.stat().st_size
        if size != record["bytes"]:
            raise ValueError(f"{path} is damaged: it has {size} bytes in place of {record['bytes']}")
        return path

    def _assembled(self, number):
        tensor, dtype, shape = self.manifest["tensors"][number]
        whole = np.empty(shape, {"fp32": "<f4", "fp64": "<f8"}[dtype])
        held = np.zeros(shape, bool)
        for path, pieces in self._pieces.get(number, {}).items():
            where = f"{path}: a piece of {tensor}"
            with open(path, "rb") as file:
                for begin, extent, offset, digest in pieces:
                    if not len(begin) == len(extent) == len(shape) or not all(
                        0 <= b and 0 < e <= n - b for b, e, n in zip(begin, extent, shape)
                    ):
                        raise ValueError(f"{where} does not lie in the tensor: {begin}, {extent} of {list(shape)}")
                    file.seek(offset)
                    count = int(np.prod(extent, dtype=np.int64))
                    data = file.read(count * whole.itemsize)
                    if len(data) != count * whole.itemsize:
                        raise ValueError(f"{where} lies outside of the file")
                    _check_digest(data, digest, where)
                    box = tuple(slice(b, b + e) for b, e in zip(begin, extent))
                    if held[box].any():
                        raise ValueError(f"{where} overlaps another one")
                    held[box] = True
                    whole[box] = np.frombuffer(data, whole.dtype).reshape(extent)
        if not held.all():
            missing = int((~held).sum())
            raise ValueError(f"{self.folder / 'manifest.json'} has no piece with {missing} numbers of {tensor}")
        return whole


def _read_manifest(path):
    text = path.read_bytes().rstrip()
    try:
        manifest = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(manifest, dict) or not {"step", "tensors", "shards", "views", "xxh64"} <= manifest.keys():
        raise ValueError(f"{path} is damaged: it lacks what a checkpoint's manifest has")
    # Its last key is the digest of the text without it.
    _check_digest(text.rpartition(b',"xxh64":')[0] + b"}", manifest["xxh64"], path)
    return manifest


def _check_digest(data, digest, where):
    if xxhash and xxhash.xxh64(data).hexdigest() != digest:
        raise ValueError(f"{where} is damaged: its digest is not {digest}")


def _plain_name(name, where):
    """The name of something in a checkpoint's own folder; nothing there points out of it."""
    if name in ("", ".", "..") or "/" in name:
        raise ValueError(f'{where} names "{name}", which is no plain name')
    return name


def open_checkpoint(path, average=None):
    """path: a checkpoint's folder, a folder of checkpoints or a run directory (then its newest), or the file
    latest or best among checkpoints. average: see Checkpoint."""
    path = pathlib.Path(path)
    if path.is_dir() and (path / "manifest.json").exists():
        return Checkpoint(path, average)
    for pointer in (path, path / "latest", path / "checkpoints" / "latest"):
        if pointer.name in POINTERS and pointer.is_file():
            return Checkpoint(pointer.parent / _plain_name(pointer.read_text().strip(), pointer), average)
    if (path / "config.json").exists():
        raise FileNotFoundError(f"{path} holds no checkpoint: none is due yet, or checkpoint.every is 0")
    if path.name == "best":
        raise FileNotFoundError(f"there is no {path}: it is written at validations, with checkpoint.best")
    raise FileNotFoundError(f"{path} is neither a checkpoint nor a run directory with one")
