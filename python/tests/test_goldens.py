"""Layers and models against tests/goldens, numbers of other PyTorch code with which the C++ tests compare, too."""

import h5py
import pytest
import torch

from jigsaw_train import layers, models


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def tensors(group):
    return {name: torch.from_numpy(values[...]) for name, values in group.items()}


def assert_equal(found, expected):
    assert found.shape == expected.shape
    error = (found - expected).norm() / expected.norm()
    assert error < 1e-12, error


def load(module, state):
    """Golden weights of patches are flat, [out, C * points]."""
    own = module.state_dict()
    assert own.keys() == state.keys()
    module.load_state_dict({name: value.reshape(own[name].shape) for name, value in state.items()})


def check_training(path, options, **constructor):
    with h5py.File(path) as file:
        x, expected = (torch.from_numpy(file[name][...]) for name in ("inputs", "output_step_1"))
        state = tensors(file["initial_parameters"])
        sizes = {key: value.tolist() if hasattr(value, "tolist") else value for key, value in file.attrs.items()}
    options = {**sizes, **options}
    model = models.build(options, sizes["input_channels"], sizes["output_channels"], sizes["grid"])
    load(model, state)
    assert_equal(model.eval()(x[0]), expected)


@pytest.mark.parametrize("name", ["weathermixer", "weathermixer_output_map"])
def test_weathermixer(goldens, name):
    check_training(goldens / f"{name}.h5", {"type": "weathermixer"})


def test_vit(goldens):
    check_training(goldens / "vit.h5", {"type": "vit", "positions": "learned", "final_norm": True})


def test_sfno(goldens):
    check_training(goldens / "sfno.h5", {"type": "sfno", "positions": True})


UNET = {"type": "unet", "kernel": [3], "norm_groups": 2, "down": "max_pool"}
UNETS = {
    "unet": {"widths": [4, 6, 8], "padding_mode": ["zeros"], "up": "nearest"},
    "unet_circular": {"widths": [4, 4], "padding_mode": ["circular"], "up": "conv_transpose"},
    "unet_3d": {"widths": [4, 6], "padding_mode": ["zeros"], "up": "nearest"},
    "unet_planned": {
        "widths": [2, 3, 4, 4], "kernels": [[1, 3, 3], 3, 3, [1, 3, 3]], "strides": [1, [1, 2, 2], 2, [1, 3, 2]],
        "convolutions": [2, 3, 1, 2], "decoder_convolutions": [1, 2, 1], "norm_groups": "channels",
        "padding_mode": ["zeros"], "down": "first_conv", "up": "conv_transpose", "activation": "leaky_relu",
    },
    "residual_unet": {
        "widths": [2, 3, 4, 4], "kernels": [[1, 3, 3], 3, 3, 3], "strides": [1, [1, 2, 2], 2, [2, 2, 1]],
        "blocks": [1, 2, 2, 1], "decoder_convolutions": [1, 2, 1], "norm_groups": "channels",
        "padding_mode": ["zeros"], "down": "first_conv", "up": "conv_transpose", "activation": "leaky_relu",
    },
}  # fmt: skip


def golden(path, name):
    with h5py.File(path) as file:
        group = file[name]
        return (
            torch.from_numpy(group["input"][...]),
            torch.from_numpy(group["output"][...]),
            tensors(group["parameters"]),
            {key: value.tolist() if hasattr(value, "tolist") else value for key, value in group.attrs.items()},
        )


@pytest.mark.parametrize("name", UNETS)
def test_unet(goldens, name):
    x, expected, state, _ = golden(goldens / ("residual_unet.h5" if "blocks" in UNETS[name] else "unets.h5"), name)
    model = models.build({**UNET, **UNETS[name]}, x.shape[-1], expected.shape[-1], x.shape[1:-1])
    model.load_state_dict(state)
    assert_equal(model(x), expected)


@pytest.mark.parametrize("name", ["windowed_attention", "windowed_attention_shifted", "windowed_attention_circular"])
def test_windowed_attention(goldens, name, monkeypatch):
    """The golden shifts are not all half a window: they are put in the place of it."""
    x, expected, state, said = golden(goldens / "attention.h5", name)
    attention = layers.WindowedAttention(x.shape[-1], said["heads"], said["window"], True, bool(said["circular"]))
    attention.load_state_dict(state)
    monkeypatch.setattr(attention, "shift_in", lambda space: said["shift"])
    assert_equal(attention(x), expected)


@pytest.mark.parametrize("name", ["attention", "attention_1d", "attention_3d", "rotary_attention"])
def test_attention(goldens, name):
    x, expected, state, said = golden(goldens / "attention.h5", name)
    attention = layers.Attention(x.shape[-1], said["heads"], rotary_base=said.get("base"))
    attention.load_state_dict(state)
    assert_equal(attention(x), expected)


def test_sincos_positions(goldens):
    x, expected, _, said = golden(goldens / "attention.h5", "sincos_positions")
    assert_equal(x + layers.sincos_positions(x, said["base"]), expected)


@pytest.mark.parametrize("name", ["", "_circular", "_1d", "_3d"])
def test_overlapping_patches(goldens, name):
    x, expected, state, said = golden(goldens / "embeddings.h5", "overlapping_patch_embed" + name)
    embed = layers.PatchEmbed(
        x.shape[-1], expected.shape[-1], said["patch"], state["weight"].shape[2:], bool(said["circular"])
    )
    embed.load_state_dict(state)
    assert_equal(embed(x), expected)


def test_time(goldens):
    x, expected, state, said = golden(goldens / "embeddings.h5", "time_embedding")
    embed = layers.PatchEmbed(x.shape[-1], expected.shape[-1], said["patch"])
    load(embed, {key[2:]: value for key, value in state.items() if key.startswith("0.")})
    time = layers.Time(said["channels"], expected.shape[-1])
    time.load_state_dict({key: value for key, value in state.items() if key.startswith("fc")})
    assert_equal(embed(x) + time(x), expected)


@pytest.mark.parametrize("name", ["conv_pole_cell", "conv_pole_point"])
def test_convolutions_across_poles(goldens, name):
    x, expected, state, _ = golden(goldens / "field_layers.h5", name)
    edges = [name.removeprefix("conv_"), "circular"]
    conv = layers.Convolution(x.shape[-1], expected.shape[-1], (3, 3), 1, (1, 1), edges, edges)
    conv.load_state_dict(state)
    assert_equal(layers.channels_last(conv(layers.channels_first(x))), expected)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_modes(goldens, mode):
    x, expected, state, _ = golden(goldens / "field_layers.h5", f"conv_{mode}")
    conv = layers.Convolution(x.shape[-1], expected.shape[-1], (5, 5), 1, (2, 2), [mode] * 2, [mode] * 2)
    conv.load_state_dict(state)
    assert_equal(layers.channels_last(conv(layers.channels_first(x))), expected)
