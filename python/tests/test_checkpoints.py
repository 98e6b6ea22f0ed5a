"""Checkpoints by hand: two shards that hold a parameter and its moment, and what can be wrong with them."""

import json
import shutil

import numpy as np
import pytest

import jigsaw_train

VALUES = np.arange(12, dtype="<f4").reshape(3, 4)
# XXH64, seed 0, of the bytes of VALUES[:, :2] and of VALUES[:, 2:]
DIGESTS = ["5d8b2f7b2bdb0756", "dac5c54cdea172e7"]
READERS = {
    "parameters": lambda checkpoint: checkpoint["weight"],
    "adamw.moment1": lambda checkpoint: checkpoint.optimizer("adamw.moment1")["weight"],
}
both = pytest.mark.parametrize("kind", READERS)


@pytest.fixture
def checkpoint(tmp_path):
    """A run with a checkpoint whose tensors are cut into two boxes of columns: its folder, its manifest, and what
    writes the manifest and opens the checkpoint."""
    folder = tmp_path / "checkpoints/step_00000001"
    folder.mkdir(parents=True)
    (tmp_path / "config.json").touch()
    (tmp_path / "checkpoints/latest").write_text("step_00000001\n")
    (folder / "parameters.h5").write_bytes(b"a view")
    shards = []
    for rank, digest in enumerate(DIGESTS):
        name = f"rank_{rank:04}.h5"
        data = np.ascontiguousarray(VALUES[:, 2 * rank : 2 * rank + 2]).tobytes()
        (folder / name).write_bytes(b"\0" * 16 + data + data)
        pieces = [[tensor, [0, 2 * rank], [3, 2], 16 + tensor * len(data), digest] for tensor in range(len(READERS))]
        shards.append({"name": name, "bytes": 16 + 2 * len(data), "pieces": pieces})
    manifest = {
        "step": 1, "extra": {}, "tensors": [[f"{kind}/weight", "fp32", [3, 4]] for kind in READERS], "shards": shards,
        "views": [{"name": "parameters.h5", "bytes": 6}],
    }  # fmt: skip

    def write():
        xxhash = jigsaw_train.checkpoint.xxhash
        text = json.dumps(manifest, separators=(",", ":"))
        digest = xxhash.xxh64(text.encode()).hexdigest() if xxhash else ""
        (folder / "manifest.json").write_text(f'{text[:-1]},"xxh64":"{digest}"}}\n')
        return jigsaw_train.open_checkpoint(tmp_path)

    return folder, manifest, write


@both
def test_pieces_are_put_together(checkpoint, kind):
    _, _, write = checkpoint
    assert np.array_equal(READERS[kind](write()), VALUES)


def change(manifest, box):
    for piece in manifest["shards"][1]["pieces"]:
        piece[1:3] = box


@both
@pytest.mark.parametrize(
    "box, message",
    [
        (([0, 2], [3, 1]), "no piece with 3 numbers of {kind}/weight"),
        (([0, 1], [3, 2]), "overlaps"),
        (([0, 3], [3, 2]), "does not lie in the tensor"),
        (([0, -1], [3, 2]), "does not lie in the tensor"),
        (([0], [3]), "does not lie in the tensor"),
    ],
)
def test_boxes_must_hold_each_number_once(checkpoint, monkeypatch, kind, box, message):
    monkeypatch.setattr("jigsaw_train.checkpoint.xxhash", None)
    _, manifest, write = checkpoint
    change(manifest, box)
    with pytest.raises(ValueError, match=message.format(kind=kind)):
        READERS[kind](write())


@both
def test_pieces_must_lie_in_their_file(checkpoint, kind):
    _, manifest, write = checkpoint
    for piece in manifest["shards"][1]["pieces"]:
        piece[3] += 40
    with pytest.raises(ValueError, match="rank_0001.h5.*outside of the file"):
        READERS[kind](write())


@pytest.mark.parametrize("name", ["rank_0001.h5", "parameters.h5"])
def test_files_must_be_there_and_whole(checkpoint, name):
    folder, _, write = checkpoint
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1])
    with pytest.raises(ValueError, match=f"{name} is damaged: it has {len(data) - 1} bytes in place of {len(data)}"):
        write()
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        write()


@both
def test_damaged_pieces_are_refused(checkpoint, kind):
    pytest.importorskip("xxhash")
    folder, _, write = checkpoint
    shard = folder / "rank_0001.h5"
    data = bytearray(shard.read_bytes())
    data[20] ^= 1
    data[44] ^= 1
    shard.write_bytes(data)
    with pytest.raises(ValueError, match=f"rank_0001.h5: a piece of {kind}/weight is damaged"):
        READERS[kind](write())


def test_damaged_manifests_are_refused(checkpoint, tmp_path):
    folder, _, write = checkpoint
    write()
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text[:-9])
    with pytest.raises(ValueError, match="manifest.json is damaged"):
        jigsaw_train.open_checkpoint(tmp_path)
    pytest.importorskip("xxhash")
    (folder / "manifest.json").write_text(text.replace('"step":1', '"step":2'))
    with pytest.raises(ValueError, match="manifest.json is damaged: its digest"):
        jigsaw_train.open_checkpoint(tmp_path)


def test_what_an_optimizer_keeps_is_known_by_name(checkpoint):
    _, _, write = checkpoint
    for kind in ("adamw.moment3", "parameters"):
        with pytest.raises(ValueError, match=f"no '{kind}' of an optimizer but adamw.moment1$"):
            write().optimizer(kind)


def test_imported_checkpoints_have_no_configuration(checkpoint):
    _, manifest, write = checkpoint
    manifest["extra"] = {"imported_from": "weights.safetensors"}
    for name in ("configuration", "statistics", "grid", "channels"):
        with pytest.raises(ValueError, match="step_00000001 holds no .*imported.*take that of the run"):
            getattr(write(), name)


def test_the_average_is_taken_where_there_is_one(checkpoint):
    _, manifest, write = checkpoint
    checkpoint = write()
    assert not checkpoint.average
    with pytest.raises(FileNotFoundError, match="no moving average"):
        jigsaw_train.open_checkpoint(checkpoint.folder, average=True)
    manifest["tensors"][1][0] = "average/weight"
    write()
    for average, averaged in ((None, True), (True, True), (False, False)):
        opened = jigsaw_train.open_checkpoint(checkpoint.folder, average)
        assert opened.average == averaged == ("averaged" in repr(opened))
        assert np.array_equal(opened["weight"], VALUES)


def test_pointers_name_the_newest_and_the_best(checkpoint, tmp_path):
    folder, _, write = checkpoint
    write()
    shutil.copytree(folder, folder.with_name("step_00000002"))
    run = jigsaw_train.open_run(tmp_path)
    with pytest.raises(FileNotFoundError, match="no .*checkpoints/best: it is written .* checkpoint.best"):
        run.checkpoint(best=True)
    (tmp_path / "checkpoints/best").write_text("step_00000002\n")
    assert run.checkpoint().folder == folder
    for best in (run.checkpoint(best=True), jigsaw_train.open_checkpoint(tmp_path / "checkpoints/best")):
        assert best.folder == folder.with_name("step_00000002")
    with pytest.raises(ValueError, match="not by both"):
        run.checkpoint(step=1, best=True)


def test_a_run_without_checkpoints_says_so(tmp_path):
    (tmp_path / "config.json").touch()
    with pytest.raises(FileNotFoundError, match="holds no checkpoint: none is due yet, or checkpoint.every is 0"):
        jigsaw_train.open_run(tmp_path).checkpoint()


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
        write()
