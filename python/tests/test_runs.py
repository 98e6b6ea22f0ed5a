"""What a run of jigsaw-train leaves, opened; and its models, trained in fp64, against its own losses and forecasts."""

import json
import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch

import jigsaw_train
from jigsaw_train import models, open_checkpoint

PATCHES = {"patch": [3, 4], "embed_dim": 12, "depth": 2}
MODELS = {
    "weathermixer": {"type": "weathermixer", **PATCHES},
    "weathermixer_plain": {
        "type": "weathermixer", **PATCHES, "positions": True, "final_norm": True, "output_map": False,
        "activation": "silu",
    },
    "vit": {"type": "vit", **PATCHES, "heads": 3, "layer_scale": 0.5},
    "vit_rotary": {"type": "vit", **PATCHES, "heads": 3, "positions": "rotary", "patch_kernel": [5, 6]},
    "vit_sincos": {"type": "vit", **PATCHES, "heads": 2, "positions": "sincos", "activation": "prelu"},
    "swin": {"type": "swin", "patch": [2, 3], "embed_dim": 8, "depth": 3, "heads": 2, "window": [3, 2]},
    "swin_circular": {
        "type": "swin", "patch": [2, 3], "embed_dim": 8, "depth": 2, "heads": 2, "window": [6, 2], "circular": True,
    },
    "sfno": {"type": "sfno", "embed_dim": 6, "depth": 2, "layer_scale": 0.5, "activation": "prelu"},
    "sfno_coarser": {
        "type": "sfno", "embed_dim": 6, "depth": 1, "scale": 2, "degrees": 4, "positions": True, "final_norm": False,
        "input_skip": False,
    },
    "unet": {"type": "unet", "widths": [4, 6, 8], "norm_groups": 2, "activation": "prelu"},
    "unet_circular": {
        "type": "unet", "widths": [4, 6], "norm_groups": 0, "down": "avg_pool", "up": "linear",
        "padding_mode": ["reflect", "circular"],
    },
    "unet_conv": {
        "type": "unet", "base_width": 4, "levels": 3, "norm_groups": 4, "down": "conv", "up": "conv_transpose",
        "kernel": [3, 5],
    },
    "unet_poles": {"type": "unet", "widths": [4, 6, 6], "norm_groups": 2, "padding_mode": ["pole_point", "circular"]},
    "unet_poles_conv": {
        "type": "unet", "widths": [4, 6, 6], "norm_groups": 2, "down": "conv",
        "padding_mode": ["pole_point", "circular"],
    },
    "unet_levels": {
        "type": "unet", "base_width": 4, "levels": 3, "most_width": 8, "norm_groups": "channels", "down": "first_conv",
        "up": "linear", "strides": [1, [1, 2], [3, 2]], "kernels": [[1, 3], 3, [5, 3]], "convolutions": [1, 2, 3],
        "padding_mode": ["pole_point", "circular"], "activation": "leaky_relu",
    },
    "unet_residual": {
        "type": "unet", "widths": [4, 6, 6], "norm_groups": 2, "down": "first_conv", "blocks": [1, 2, 1],
        "padding_mode": ["pole_point", "circular"], "activation": "prelu",
    },
    "unet_residual_pooled": {
        "type": "unet", "widths": [4, 6, 8], "norm_groups": 0, "down": "avg_pool", "blocks": [2, 1, 1],
    },
}  # fmt: skip
SAMPLES, ROWS, COLUMNS = 6, 11, 24


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Two inputs, components of a vector among them, and a target, float64."""
    folder = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(1)
    fields = {name: random.normal(3, 2, (SAMPLES, ROWS, COLUMNS)) for name in ("u", "p")}
    fields["q"] = fields["u"] * np.roll(fields["p"], 1, 2) + 0.1 * random.normal(size=(SAMPLES, ROWS, COLUMNS))
    with h5py.File(folder / "images.h5", "w") as file:
        for name, values in fields.items():
            file[name] = values
    return folder, fields


def trained(jigsaw_train, folder, name, model=None, **optimizer):
    configuration = {
        "data": {
            "task": "map", "files": ["images.h5"], "variables": ["u", "p"], "targets": ["q"],
            "dims": ["sample", "height", "width"],
            "train": {"sample": [0, 3]}, "valid": {"sample": [4, 5]},
        },
        "model": model or MODELS[name],
        "optimizer": {"learning_rate": 1e-2, "clip_norm": 1.0, **optimizer},
        "train": {"steps": 3, "batch_size": 2, "precision": "fp64"},
        "validation": {"every": 3},
        "output": name,
    }  # fmt: skip
    (folder / f"{name}.json").write_text(json.dumps(configuration))
    jigsaw_train("--config", f"{name}.json", "--resume", "never", cwd=folder)
    return folder / name


@pytest.mark.parametrize("name", MODELS)
def test_models_give_the_same_numbers(jigsaw_train, images, name):
    """The loss of the validation after three steps in fp64; as images are averaged, so is it."""
    folder, fields = images
    run = opened(trained(jigsaw_train, folder, name))
    exported = folder / f"{name}.safetensors"
    jigsaw_train("export", "--checkpoint", run.folder, "--output", exported, cwd=folder)
    statistics = run.checkpoint().statistics
    normalised = {
        key: torch.from_numpy((values[4:] - statistics[key]["mean"]) / statistics[key]["deviation"])
        for key, values in fields.items()
    }
    x, target = torch.stack([normalised["u"], normalised["p"]], -1), normalised["q"][..., None]
    (line,) = run.lines("valid")
    for model in (models.load(run.folder), models.load(exported, run.folder)):
        with torch.no_grad():
            y = model(x)
        assert y.dtype == torch.float64
        loss = ((y - target) ** 2).mean().item()
        assert abs(loss / line["loss"] - 1) < 1e-12
        # A sum with signs sees what squares do not.
        bias = (y - target).mean().item() * statistics["q"]["deviation"]
        assert abs(bias - line["metrics"]["q"]["bias"]) < 1e-12 * statistics["q"]["deviation"]


def test_batches_are_written_as_models_take_them(jigsaw_train, images):
    folder, fields = images
    run = opened(trained(jigsaw_train, folder, next(iter(MODELS))))
    of_run = ("--config", run.folder / "config.json", "--set", f"data.normalization={run.folder}")
    # Of other training data statistics of their own would be others.
    other = ("--set", 'data.train={"sample": [0, 1]}')
    jigsaw_train("batch", *of_run, *other, "--valid-batch", "1", "--output", "valid.nc", cwd=folder)
    statistics = run.checkpoint().statistics
    normalised = {
        name: (values[4:] - statistics[name]["mean"]) / statistics[name]["deviation"] for name, values in fields.items()
    }
    with h5py.File(folder / "valid.nc") as file:
        assert json.loads(file["input"].attrs["channels"]) == ["u", "p"]
        assert np.abs(file["input"][:] - np.stack([normalised["u"], normalised["p"]], -1)).max() < 1e-12
        assert np.abs(file["target"][0, ..., 0] - normalised["q"]).max() < 1e-12
        (line,) = run.lines("valid")
        with torch.no_grad():
            error = models.load(run.folder)(torch.from_numpy(file["input"][:])).numpy() - file["target"][0]
    assert abs((error**2).mean() / line["loss"] - 1) < 1e-12


def opened(folder):
    return jigsaw_train.open_run(folder)


FORECASTERS = {
    "vit": {"type": "vit", "patch": [6, 12], "embed_dim": 8, "depth": 1, "heads": 2, "time_embedding": True},
    "unet": {"type": "unet", "widths": [4, 6], "norm_groups": 2, "padding_mode": ["pole_point", "circular"]},
}


ENSEMBLE = {"members": 2, "local_noise": 2, "global_noise": 1}
LOSS = {"unet": {"loss": {"type": "crps"}, "ensemble": ENSEMBLE}}


@pytest.fixture(scope="module")
def forecasts(jigsaw_train, tmp_path_factory):
    """Runs on sample data, with rollouts, and what they predict."""
    folder = tmp_path_factory.mktemp("forecasts")
    jigsaw_train("sample-data", "--output", "data", "--months", 1, cwd=folder)
    for name, model in FORECASTERS.items():
        configuration = {
            "data": {
                "files": ["data/*.nc"], "variables": ["t2m", "u10"], "forcings": ["latitude", "time_of_day"],
                "input_hours": [0], "train": ["2021-01-01", "2021-01-06"], "valid": ["2021-01-08", "2021-01-10"],
            },
            "model": model,
            "optimizer": {"ema_decay": 0.5},
            "train": {"steps": 4, "batch_size": 2},
            "validation": {"every": 2, "rollout": 2},
            "output": name,
            **LOSS.get(name, {}),
        }  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(configuration))
        jigsaw_train("--config", f"{name}.json", cwd=folder)
        jigsaw_train(
            *("predict", "--config", f"{name}.json", "--checkpoint", name, "--output", f"{name}.nc"),
            *("--steps", 1, "--start", "2021-01-09T06:00"),
            cwd=folder,
        )
    return folder


def test_metrics_are_tables(forecasts):
    run = jigsaw_train.open_run(forecasts / "vit")
    training, validation = run.training(), run.validation()
    assert list(training.index) == [1, 2, 3, 4]
    assert training["loss"].notna().all() and training["learning_rate"].iloc[0] > 0
    assert training["time"].dt.tz is not None
    assert set(validation.index) == {(s, v, h) for s in (2, 4) for v in ("t2m", "u10") for h in (6.0, 12.0)}
    last = [line for line in run.lines("valid")][-1]
    assert validation.loc[(4, "t2m", 6.0), "rmse"] == last["metrics"]["t2m"]["rmse"]
    assert run.summary is not None


def test_checkpoints_are_arrays(forecasts):
    run = jigsaw_train.open_run(forecasts / "vit")
    checkpoint = run.checkpoint()
    assert checkpoint.step == 4 and checkpoint.grid == (37, 72)
    assert checkpoint["encoder.weight"].shape == (8, 2 + 1 + 4, 72)
    assert all(np.isfinite(values).all() for values in checkpoint.values())
    moments = checkpoint.optimizer("adamw.moment1")
    assert {n: v.shape for n, v in moments.items()} == {n: v.shape for n, v in checkpoint.items()}
    assert checkpoint.channels[:2] == ["t2m", "u10"]
    averages = {average: run.checkpoint(average=average)["encoder.weight"] for average in (None, True, False)}
    assert np.array_equal(averages[None], averages[True])
    assert not np.array_equal(averages[True], averages[False])
    for average, expected in averages.items():
        assert np.array_equal(models.load(run.folder, average=average).encoder.weight.detach(), expected)
    with h5py.File(checkpoint.folder / "average.h5") as file:
        assert all(np.array_equal(file[name][...], values) for name, values in checkpoint.items())


def test_state_dicts_go_back_to_the_program(jigsaw_train, forecasts):
    """As README.md shows: with the metadata, which are the statistics."""
    safetensors = pytest.importorskip("safetensors")
    from safetensors.torch import save_file

    exported, tuned, imported = (forecasts / name for name in ("vit.safetensors", "tuned.safetensors", "tuned"))
    jigsaw_train("export", "--checkpoint", "vit", "--output", exported, cwd=forecasts)
    with pytest.raises(ValueError, match="vit.safetensors holds one set of weights"):
        models.load(exported, forecasts / "vit", average=True)
    model = models.load(exported, forecasts / "vit")
    with safetensors.safe_open(exported, "pt") as file:
        save_file(model.state_dict(), tuned, metadata=file.metadata())
    jigsaw_train("import", "--input", tuned, "--output", imported, cwd=forecasts)
    assert open_checkpoint(imported).statistics == open_checkpoint(forecasts / "vit").statistics
    with pytest.raises(ValueError, match="holds no configuration, as it was imported.*models.load.checkpoint, run."):
        models.load(imported)
    loaded = models.load(imported, forecasts / "vit").state_dict()
    assert all(torch.equal(loaded[name], values) for name, values in model.state_dict().items())


def philox(counter, key):
    """Philox4x32-10 (Salmon et al. 2011), word by word."""
    c, k, word = list(counter), list(key), 0xFFFFFFFF
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(second >> 32) ^ c[1] ^ k[0], second & word, (first >> 32) ^ c[3] ^ k[1], first & word]
        k = [(k[0] + 0x9E3779B9) & word, (k[1] + 0xBB67AE85) & word]
    return c


def key_of_noise(seed):
    """Of the purpose "noise", the third, and the path "members of forecasts"."""
    whole = (1 << 64) - 1

    def mixed(x):
        x = (x + 0x9E3779B97F4A7C15) & whole
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & whole
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & whole
        return x ^ (x >> 31)

    path = 14695981039346656037
    for c in b"members of forecasts":
        path = ((path ^ c) * 1099511628211) & whole
    key = mixed(mixed(mixed(seed) ^ 2) ^ path)
    return key & 0xFFFFFFFF, key >> 32


def noise_of(start, member, points, local, whole):
    """Of the first lead of a forecast, [points, local + whole], as docs/formulas.md has it."""
    minutes, key = int(start.astype("datetime64[m]").astype(int)), key_of_noise(1)

    def normal(element):
        words = philox([element // 2, 0, member, minutes], key)
        radius, angle = words[2 * (element % 2)], words[2 * (element % 2) + 1]
        return np.sqrt(-2 * np.log((radius + 1) / 2**32)) * np.cos(2 * np.pi * angle / 2**32)

    own = np.array([normal(i) for i in range(points * local)]).reshape(points, local)
    return np.hstack([own, np.broadcast_to([normal(points * local + i) for i in range(whole)], (points, whole))])


@pytest.mark.parametrize("name", FORECASTERS)
def test_forecasts_are_data_sets_that_the_module_computes(forecasts, name):
    """One step from the files' state: what `predict` wrote, in float32, by the module from the same state."""
    xarray = pytest.importorskip("xarray")
    forecast = jigsaw_train.open_forecast(forecasts / f"{name}.nc")
    members = ["number"] if name in LOSS else []
    assert forecast["t2m"].dims == ("time", "lead_time", *members, "latitude", "longitude")
    checkpoint = jigsaw_train.open_checkpoint(forecasts / name)
    model = models.load(forecasts / name).double()
    state = xarray.open_dataset(forecasts / "data/sample_2021-01.nc").sel(time="2021-01-09T06:00")
    fields = {name: state[name].values.astype(np.float64) for name in ("t2m", "u10")}
    statistics = checkpoint.statistics
    latitude = state["latitude"].values.astype(np.float64)
    rows = (latitude - latitude.mean()) / latitude.std()
    shape = fields["t2m"].shape
    channels = [(fields[n] - statistics[n]["mean"]) / statistics[n]["deviation"] for n in fields]
    channels.append(np.broadcast_to(rows[:, None], shape))
    for hour in (6, 12):  # now, and at the target
        angle = 2 * np.pi * hour / 24
        channels += [np.full(shape, np.sin(angle)), np.full(shape, np.cos(angle))]
    for member in range(2 if members else 1):
        x = np.stack(channels, -1)
        if members:
            start = forecast["time"].values[0]
            noise = noise_of(start, member, x[..., 0].size, ENSEMBLE["local_noise"], ENSEMBLE["global_noise"])
            x = np.concatenate([x, noise.reshape(*shape, -1)], -1)
        with torch.no_grad():
            y = model(torch.from_numpy(x)[None])[0].numpy()
        for i, field in enumerate(fields):
            expected = fields[field] + y[..., i] * statistics[field]["increment_deviation"]
            found = forecast[field].values[(0, 0, member) if members else (0, 0)]
            change = np.abs(expected - fields[field]).max()
            assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max() < 0.1 * change


def test_a_chain_of_layers_has_no_module(jigsaw_train, images):
    chain = {"type": "sequential", "layers": [{"type": "linear", "features": 1}]}
    run = trained(jigsaw_train, images[0], "chain", chain)
    with pytest.raises(ValueError, match="sequential.*weathermixer, vit, swin, sfno, unet"):
        models.load(run)


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="config.json"):
        jigsaw_train.open_run(tmp_path)
    with pytest.raises(FileNotFoundError, match="checkpoint"):
        jigsaw_train.open_checkpoint(tmp_path)
    with pytest.raises(ValueError, match="sequential.*weathermixer, vit, swin, sfno, unet"):
        models.build({"type": "sequential"}, 1, 1, (4, 4))
    with pytest.raises(ValueError, match="'vit' needs depth, patch$"):
        models.build({"type": "vit", "embed_dim": 4, "heads": 2}, 1, 1, (4, 4))
    with pytest.raises(ValueError, match="widths, or base_width and levels"):
        models.build({"type": "unet"}, 1, 1, (4, 4))


def written(folder, data, lines, **summary):
    """A run directory by hand."""
    (folder / "config.json").write_text(json.dumps({"data": {"task": "forecast", "lead_hours": 6, **data}}))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if summary:
        (folder / "summary.json").write_text(json.dumps(summary))
    return jigsaw_train.open_run(folder)


def validated(rmse, **leads):
    return {"kind": "valid", "step": 1, "metrics": {"u": {"rmse": rmse}}, "leads": leads}


def test_leads_of_sequences_count_steps(tmp_path):
    pytest.importorskip("pandas")
    data = {"dims": ["sample", "time", "height"], "lead_steps": 3}
    run = written(tmp_path, data, [validated(1.0, **{"6": {"u": {"rmse": 2.0}}})])
    assert run.validation()["rmse"].to_dict() == {(1, "u", 3.0): 1.0, (1, "u", 6.0): 2.0}


def test_what_is_no_number_is_nan(tmp_path):
    pytest.importorskip("pandas")
    run = written(tmp_path, {}, [validated(None), {"kind": "train", "step": 1, "loss": None}])
    for column in (run.validation()["rmse"], run.training()["loss"]):
        assert column.dtype == np.float64 and column.isna().all()


def test_a_run_that_goes_on_has_no_summary(tmp_path):
    lines = [{"kind": "train", "step": step} for step in range(1, 4)]
    assert written(tmp_path, {}, lines, steps=3).summary == {"steps": 3}
    assert written(tmp_path, {}, lines, steps=2).summary is None


def test_a_run_that_begins_has_empty_tables(tmp_path):
    pytest.importorskip("pandas")
    run = written(tmp_path, {}, [])
    (tmp_path / "metrics.jsonl").unlink()
    assert run.training().empty and run.validation().empty and run.summary is None


def test_models_are_imported_when_asked_for():
    script = (
        "import sys, jigsaw_train; assert 'torch' not in sys.modules; jigsaw_train.models.load; "
        "assert not hasattr(jigsaw_train, 'nothing')"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", models.KINDS)
def test_defaults_are_the_program_s(root, name):
    """The keys, and their defaults, of docs/configuration.md."""
    section = (root / "docs/configuration.md").read_text().split(f"## model of type `{name}`\n")[1].split("\n## ")[0]
    rows = [[cell.strip(" `") for cell in row.split(" | ")] for row in section.splitlines() if row.startswith("| `")]
    documented = {
        key.strip("| `"): None if default == "required" else json.loads(default) for key, _, default, *_ in rows
    }
    assert models.DEFAULTS[name] == documented


STARTS = {
    "weathermixer": {**MODELS["weathermixer"], "embed_dim": 32},
    "vit": {**MODELS["vit"], "embed_dim": 48},
    "swin": {**MODELS["swin"], "embed_dim": 32},
    "sfno": {**MODELS["sfno"], "embed_dim": 24},
    "unet": {**MODELS["unet_conv"], "base_width": 8},
}


@pytest.mark.parametrize("name", STARTS)
def test_parameters_start_as_in_the_program(jigsaw_train, images, name):
    checkpoint = opened(trained(jigsaw_train, images[0], f"start_{name}", STARTS[name], learning_rate=0)).checkpoint()
    torch.manual_seed(1)
    model = models.build(STARTS[name], 2, 1, checkpoint.grid)
    for parameter, values in model.state_dict().items():
        found, expected = values.double().numpy(), checkpoint[parameter]
        assert found.shape == expected.shape
        if expected.size > 1 and expected.std() == 0:
            assert np.allclose(found, expected, rtol=1e-6), parameter
        elif expected.size > 200:
            assert 0.8 < found.std() / expected.std() < 1.25, parameter


def test_a_last_map_starts_as_one_over_output_and_input():
    options = {"type": "weathermixer", "patch": [2, 2], "embed_dim": 4, "depth": 1}
    model, bound = models.build(options, 60, 40, (4, 4)), 1 / 10
    for parameter in model.output_map.parameters():
        assert 0.8 * bound < parameter.abs().max() <= bound


def test_all_heads_may_start_at_zero():
    options = {"type": "unet", "widths": [8] * 4, "deep_supervision": True, "zero_head": True}
    heads = {key: value for key, value in models.build(options, 1, 2, (8, 8)).state_dict().items() if "head" in key}
    assert len(heads) == 4 and not any(value.any() for value in heads.values())
