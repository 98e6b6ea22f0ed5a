"""Checkpoints by hand: two shards that hold one tensor, and what can be wrong with them."""

import json

import numpy as np
import pytest

import jigsaw_train

MOMENT = np.arange(12, dtype="<f4").reshape(3, 4)
# XXH64, seed 0, of the bytes of MOMENT[:, :2] and of MOMENT[:, 2:]
DIGESTS = ["5d8b2f7b2bdb0756", "dac5c54cdea172e7"]


@pytest.fixture
def checkpoint(tmp_path):
    """A run with a checkpoint whose tensor is cut into two boxes of columns; the folder and a way to change the manifest."""
    folder = tmp_path / "checkpoints/step_00000001"
    folder.mkdir(parents=True)
    (tmp_path / "checkpoints/latest").write_text("step_00000001\n")
    (folder / "parameters.h5").touch()
    shards = []
    for rank, digest in enumerate(DIGESTS):
        name = f"rank_{rank:04}.h5"
        data = np.ascontiguousarray(MOMENT[:, 2 * rank : 2 * rank + 2]).tobytes()
        (folder / name).write_bytes(b"\0" * 16 + data)
        shards.append({"name": name, "pieces": [[0, [0, 2 * rank], [3, 2], 16, digest]]})
    manifest = {"step": 1, "tensors": [["adamw.moment1/weight", "fp32", [3, 4]]], "shards": shards}

    def write():
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return jigsaw_train.open_checkpoint(tmp_path)

    return folder, manifest, write


def test_pieces_are_put_together(checkpoint):
    _, _, write = checkpoint
    assert np.array_equal(write().optimizer("adamw.moment1")["weight"], MOMENT)


def change(manifest, box):
    manifest["shards"][1]["pieces"][0][1:3] = box


@pytest.mark.parametrize(
    "box, message",
    [
        (([0, 2], [3, 1]), "no piece with 3 numbers of adamw.moment1/weight"),
        (([0, 1], [3, 2]), "overlaps"),
        (([0, 3], [3, 2]), "does not lie in the tensor"),
        (([0, -1], [3, 2]), "does not lie in the tensor"),
        (([0], [3]), "does not lie in the tensor"),
    ],
)
def test_boxes_must_hold_each_number_once(checkpoint, monkeypatch, box, message):
    monkeypatch.setattr("jigsaw_train.checkpoint.xxhash", None)
    _, manifest, write = checkpoint
    change(manifest, box)
    with pytest.raises(ValueError, match=message):
        write().optimizer("adamw.moment1")


def test_shards_that_are_cut_short_are_refused(checkpoint):
    folder, _, write = checkpoint
    shard = folder / "rank_0001.h5"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(ValueError, match="rank_0001.h5.*outside of the file"):
        write().optimizer("adamw.moment1")


def test_damaged_pieces_are_refused(checkpoint):
    pytest.importorskip("xxhash")
    folder, _, write = checkpoint
    shard = folder / "rank_0001.h5"
    data = bytearray(shard.read_bytes())
    data[20] ^= 1
    shard.write_bytes(data)
    with pytest.raises(ValueError, match="rank_0001.h5.*damaged"):
        write().optimizer("adamw.moment1")


@pytest.mark.parametrize("name", ["../step_00000001", "{absolute}", "..", ""])
def test_names_stay_in_the_folder(checkpoint, tmp_path, name):
    folder, manifest, write = checkpoint
    name = name.format(absolute=folder)
    write()
    (tmp_path / "checkpoints/latest").write_text(name + "\n")
    with pytest.raises(ValueError, match="latest.*no plain name"):
        jigsaw_train.open_checkpoint(tmp_path)
    (tmp_path / "checkpoints/latest").write_text("step_00000001\n")
    manifest["shards"][0]["name"] = name
    with pytest.raises(ValueError, match="manifest.json.*no plain name"):
        write().optimizer("adamw.moment1")
