#!/usr/bin/env python3
"""Writes the golden files that the C++ tests compare against, with PyTorch in float64.

    python3 tests/goldens/generate.py [--output FOLDER] [adamw layers weathermixer ...]

What each file holds is described in README.md beside this script. The references use PyTorch's
own operations (Conv2d, fold, layer_norm, AdamW, clip_grad_norm_), never a formula of this project.
"""

import argparse
import datetime
import math
import pathlib

import h5py
import numpy as np
import scipy.special
import torch
import torch.nn.functional as F

FORMAT_VERSION = 1
LAYER_NORM_EPSILON = 1e-5
BETAS = (0.9, 0.95)
ADAM_EPSILON = 1e-8
WEIGHT_DECAY = 0.05
CLIP_NORM = 1.0
STEPS = 10


def randn(*shape, scale=1.0, mean=0.0):
    return mean + scale * torch.randn(*shape)


# ---------------------------------------------------------------- files


def create(folder, name):
    file = h5py.File(folder / name, "w")
    file.attrs["format_version"] = FORMAT_VERSION
    file.attrs["torch_version"] = str(torch.__version__)
    file.attrs["command"] = f"python3 tests/goldens/generate.py {name.removesuffix('.h5')}"
    return file


def save(group, name, tensor):
    """One contiguous float64 data set."""
    data = np.asarray(tensor.detach() if torch.is_tensor(tensor) else tensor, dtype=np.float64)
    return group.create_dataset(name, data=np.ascontiguousarray(data))


def save_all(group, name, tensors):
    subgroup = group.create_group(name)
    for key, tensor in tensors.items():
        save(subgroup, key, tensor)


# ---------------------------------------------------------------- adamw.h5


def adamw_tensors():
    """Name to (initial value, weight decay, factor on the learning rate)."""
    return {
        "matrix": (randn(7, 3), WEIGHT_DECAY, 1.0),
        "vector": (randn(5), WEIGHT_DECAY, 1.0),
        "volume": (randn(2, 3, 5), 0.0, 0.2),
        "scalar": (randn(1), 0.0, 0.2),
    }


def adamw_section(file, section, clip_norm, optimizer_type=torch.optim.AdamW):
    initial = adamw_tensors()
    parameters = {name: value.clone().requires_grad_() for name, (value, _, _) in initial.items()}
    optimizer = optimizer_type(
        [{"params": [parameters[name]], "weight_decay": decay} for name, (_, decay, _) in initial.items()],
        lr=1.0,
        betas=BETAS,
        eps=ADAM_EPSILON,
    )
    learning_rates = [1e-2 * (0.2 + math.sin(step) ** 2) for step in range(1, STEPS + 1)]
    histories = {
        key: {name: [] for name in initial}
        for key in ("gradients", "parameters", "first_moment", "second_moment")
    }
    norms = []
    for step in range(STEPS):
        for name, parameter in parameters.items():
            parameter.grad = randn(*parameter.shape, scale=0.02 * 2.0**step)
            if step == 4 and name == "vector":
                parameter.grad.zero_()
            histories["gradients"][name].append(parameter.grad.clone())
        for group, (_, _, factor) in zip(optimizer.param_groups, initial.values()):
            group["lr"] = learning_rates[step] * factor
        if clip_norm:
            norms.append(torch.nn.utils.clip_grad_norm_(parameters.values(), clip_norm).item())
        optimizer.step()
        for name, parameter in parameters.items():
            state = optimizer.state[parameter]
            histories["parameters"][name].append(parameter.detach().clone())
            histories["first_moment"][name].append(state["exp_avg"].clone())
            histories["second_moment"][name].append(state["exp_avg_sq"].clone())

    group = file.create_group(section)
    group.attrs["betas"] = BETAS
    group.attrs["epsilon"] = ADAM_EPSILON
    group.attrs["clip_norm"] = clip_norm
    save(group, "learning_rate", learning_rates)
    if clip_norm:
        save(group, "gradient_norm", norms)
    save_all(group, "initial", {name: value for name, (value, _, _) in initial.items()})
    for name, (_, decay, factor) in initial.items():
        group["initial"][name].attrs["weight_decay"] = decay
        group["initial"][name].attrs["learning_rate_factor"] = factor
    for key, history in histories.items():
        save_all(group, key, {name: torch.stack(values) for name, values in history.items()})


def write_adamw(folder):
    with create(folder, "adamw.h5") as file:
        adamw_section(file, "plain", clip_norm=0.0)
        adamw_section(file, "clipped", clip_norm=CLIP_NORM)
        adamw_section(file, "adam", clip_norm=CLIP_NORM, optimizer_type=torch.optim.Adam)


# ---------------------------------------------------------------- layers; p: parameters by name


def linear(x, p):
    return F.linear(x, p["weight"], p["bias"])


def layer_norm(x, p):
    return F.layer_norm(x, x.shape[-1:], p["weight"], p["bias"], LAYER_NORM_EPSILON)


def gelu(x, p):
    return F.gelu(x)


def mlp(x, p):
    """The MLP over the channels, and so channel mixing on a field [B, H, W, C]."""
    return linear(gelu(linear(x, below(p, "fc1")), None), below(p, "fc2"))


def token_mixing(x, p):
    """x [B, h, w, N]; fc1.weight [T, h, w], fc1.bias [T], fc2.weight [h, w, T], fc2.bias [h, w]."""
    tokens = x.shape[1] * x.shape[2]
    hidden = p["fc1.bias"].shape[0]
    y = x.flatten(1, 2).transpose(1, 2)
    y = F.gelu(F.linear(y, p["fc1.weight"].reshape(hidden, tokens), p["fc1.bias"]))
    y = F.linear(y, p["fc2.weight"].reshape(tokens, hidden), p["fc2.bias"].flatten())
    return y.transpose(1, 2).unflatten(1, x.shape[1:3])


def patch_embed(x, p, patch):
    """[B, H, W, C] to [B, h, w, N]: Conv2d with stride = kernel, zeros after the last row and column."""
    padding = [-extent % size for extent, size in zip(x.shape[1:3], patch)]
    channels_first = F.pad(x.permute(0, 3, 1, 2), (0, padding[1], 0, padding[0]))
    weight = p["weight"].unflatten(1, (x.shape[3], *patch))
    return F.conv2d(channels_first, weight, p["bias"], stride=patch).permute(0, 2, 3, 1)


def patch_recover(x, p, patch, grid):
    """[B, h, w, N] to [B, *grid, C]: linear to (C, ph, pw), fold, crop."""
    padded = (x.shape[1] * patch[0], x.shape[2] * patch[1])
    columns = linear(x, p).flatten(1, 2).transpose(1, 2)
    field = F.fold(columns, padded, kernel_size=patch, stride=patch)
    return field[:, :, : grid[0], : grid[1]].permute(0, 2, 3, 1)


def below(parameters, prefix):
    """The parameters under a dotted prefix, with the prefix removed."""
    return {
        name[len(prefix) + 1 :]: value for name, value in parameters.items() if name.startswith(prefix + ".")
    }


def linear_parameters(n, k):
    return {"weight": randn(n, k, scale=1 / math.sqrt(k)), "bias": randn(n, scale=0.1)}


def norm_parameters(n):
    return {"weight": randn(n, scale=0.2, mean=1.0), "bias": randn(n, scale=0.2)}


def mlp_parameters(width, hidden):
    return {
        **prefixed("fc1", linear_parameters(hidden, width)),
        **prefixed("fc2", linear_parameters(width, hidden)),
    }


def token_mixing_parameters(h, w, hidden):
    flat = mlp_parameters(h * w, hidden)
    return {
        "fc1.weight": flat["fc1.weight"].reshape(hidden, h, w),
        "fc1.bias": flat["fc1.bias"],
        "fc2.weight": flat["fc2.weight"].reshape(h, w, hidden),
        "fc2.bias": flat["fc2.bias"].reshape(h, w),
    }


def prefixed(prefix, parameters):
    return {f"{prefix}.{name}": value for name, value in parameters.items()}


# ---------------------------------------------------------------- layers.h5


def layer_case(file, name, function, x, parameters, attributes=None, **arguments):
    """Forward, and backward from a random upstream gradient."""
    x = x.clone().requires_grad_()
    parameters = {key: value.clone().requires_grad_() for key, value in parameters.items()}
    y = function(x, parameters, **arguments)
    upstream = randn(*y.shape)
    y.backward(upstream)
    group = file.create_group(name)
    for key, value in {**arguments, **(attributes or {})}.items():
        group.attrs[key] = value
    save(group, "input", x)
    save(group, "output", y)
    save(group, "output_gradient", upstream)
    save(group, "input_gradient", x.grad)
    save_all(group, "parameters", parameters)
    save_all(group, "parameter_gradients", {key: value.grad for key, value in parameters.items()})


def mse(prediction, target, point_weights, variable_weights, valid):
    """Per sample and variable the weighted mean over valid points, then over variables and samples.

    prediction, target, valid [B, H, W, C]; point_weights [H], every longitude alike; variable_weights [C].
    """
    weights = point_weights[None, :, None, None] * valid
    means = (weights * (prediction - target) ** 2).sum((1, 2)) / weights.sum((1, 2))
    return (means @ variable_weights).mean() / variable_weights.sum()


def latitude_weights(rows):
    """sin(upper) - sin(lower) of equal cells from 62 to 47 degrees north, mean 1."""
    bounds = torch.linspace(62, 47, rows + 1).deg2rad().sin()
    weights = bounds[:-1] - bounds[1:]
    return weights / weights.mean()


def loss_case(file):
    prediction = randn(2, 5, 7, 3).requires_grad_()
    target = randn(2, 5, 7, 3)
    valid = (torch.rand(2, 5, 7, 3) < 0.8).double()
    point_weights, variable_weights = latitude_weights(5), torch.tensor([1.0, 0.25, 2.0])
    loss = mse(prediction, target, point_weights, variable_weights, valid)
    loss.backward()
    save_all(
        file,
        "mse",
        {
            "prediction": prediction,
            "target": target,
            "valid": valid,
            "loss": loss,
            "prediction_gradient": prediction.grad,
            "latitude_weights": point_weights,
            "variable_weights": variable_weights,
        },
    )


def write_layers(folder):
    with create(folder, "layers.h5") as file:
        epsilon = {"epsilon": LAYER_NORM_EPSILON}
        layer_case(file, "linear", linear, randn(3, 5, 7), linear_parameters(4, 7))
        layer_case(
            file, "layer_norm", layer_norm, randn(3, 5, 7, scale=2, mean=0.5), norm_parameters(7), epsilon
        )
        layer_case(file, "gelu", gelu, torch.cat([torch.linspace(-9, 9, 37), torch.zeros(1)]), {})
        layer_case(file, "mlp", mlp, randn(3, 7), mlp_parameters(7, 9))
        layer_case(file, "token_mixing", token_mixing, randn(2, 3, 5, 4), token_mixing_parameters(3, 5, 7))
        layer_case(file, "channel_mixing", mlp, randn(2, 3, 5, 4), mlp_parameters(4, 9))
        layer_case(
            file,
            "patch_embed",
            patch_embed,
            randn(2, 7, 10, 3),
            linear_parameters(5, 3 * 3 * 4),
            patch=(3, 4),
        )
        layer_case(
            file,
            "patch_recover",
            patch_recover,
            randn(2, 3, 3, 5),
            linear_parameters(3 * 3 * 4, 5),
            patch=(3, 4),
            grid=(7, 10),
        )
        loss_case(file)


# ---------------------------------------------------------------- activations.h5


def write_activations(folder):
    activations = {"relu": F.relu, "silu": F.silu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "mish": F.mish}
    activations["leaky_relu"] = F.leaky_relu
    with create(folder, "activations.h5") as file:
        for name, activation in activations.items():
            x = torch.cat([torch.linspace(-9, 9, 37), torch.tensor([0.1])])  # 0, too, where torch has a slope
            layer_case(file, name, lambda x, p, f=activation: f(x), x, {})


# ---------------------------------------------------------------- norms.h5

RUNNING = ("running_mean", "running_var")
MOMENTUM = 0.1


def channels_first(function):
    """A function of [B, C, space...] as one of [B, space..., C]."""
    return lambda x, p, **arguments: function(x.movedim(-1, 1), p, **arguments).movedim(1, -1)


def rms_norm(x, p, epsilon):
    """torch.nn.RMSNorm is younger than this PyTorch."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * p["weight"]


@channels_first
def group_norm(x, p, groups, epsilon):
    return F.group_norm(x, groups, p["weight"], p["bias"], epsilon)


@channels_first
def instance_norm(x, p, epsilon):
    return F.instance_norm(x, weight=p["weight"], bias=p["bias"], eps=epsilon)


@channels_first
def batch_norm(x, p, training, epsilon):
    """A running statistic's gradient is set to (before - after) / momentum: its distance from the batch's."""
    running = {key: p[key].detach().clone() for key in RUNNING}
    y = F.batch_norm(x, *running.values(), p["weight"], p["bias"], training, MOMENTUM, epsilon)
    for key in RUNNING:
        p[key].grad = (p[key].detach() - running[key]) / MOMENTUM
    return y


def write_norms(folder):
    with create(folder, "norms.h5") as file:
        weight_only = {"weight": norm_parameters(7)["weight"]}
        layer_case(file, "rms_norm", rms_norm, randn(3, 5, 7, mean=0.5), weight_only, epsilon=1e-6)
        field = randn(2, 7, 5, 12, scale=2, mean=0.5)
        layer_case(file, "group_norm", group_norm, field, norm_parameters(12), groups=3, epsilon=1e-5)
        volume = randn(2, 3, 4, 5, 6, scale=2, mean=0.5)
        layer_case(file, "group_norm_3d", group_norm, volume, norm_parameters(6), groups=2, epsilon=1e-5)
        layer_case(file, "instance_norm", instance_norm, field, norm_parameters(12), epsilon=1e-5)
        for name, training in (("batch_norm", True), ("batch_norm_evaluation", False)):
            statistics = {"running_mean": randn(6), "running_var": torch.rand(6) + 0.5}
            parameters = norm_parameters(6) | statistics
            x = randn(3, 5, 4, 6, scale=2, mean=0.5)
            layer_case(file, name, batch_norm, x, parameters, training=training, epsilon=1e-5)
# ---------------------------------------------------------------- attention.h5


def attention_parameters(width):
    """torch.nn.MultiheadAttention's, with queries, keys and values apart."""
    return {
        "in_proj_weight": randn(3, width, width, scale=1 / math.sqrt(width)),
        "in_proj_bias": randn(3, width, scale=0.1),
        **prefixed("out_proj", linear_parameters(width, width)),
    }


def attention(x, p, heads):
    """torch.nn.MultiheadAttention over all points of a field [B, space..., C]."""
    width = x.shape[-1]
    tokens = x.flatten(1, -2).transpose(0, 1)
    y, _ = F.multi_head_attention_forward(
        tokens,
        tokens,
        tokens,
        width,
        heads,
        p["in_proj_weight"].reshape(3 * width, width),
        p["in_proj_bias"].flatten(),
        None,
        None,
        False,
        0.0,
        p["out_proj.weight"],
        p["out_proj.bias"],
        need_weights=False,
    )
    return y.transpose(0, 1).reshape(x.shape)


def rotated(x, base):
    """x [B, space..., heads, d]: pairs as complex numbers, turned by the point's coordinate times a rate."""
    space = x.shape[1:-2]
    sections = []
    for axis, section in enumerate(x.chunk(len(space), -1)):
        half = section.shape[-1] // 2
        rates = base ** (-torch.arange(half) / half)
        shape = [1] * x.dim()
        shape[1 + axis], shape[-1] = space[axis], half
        angles = (torch.arange(space[axis])[:, None] * rates).reshape(shape)
        turned = torch.complex(*section.chunk(2, -1)) * torch.polar(torch.ones_like(angles), angles)
        sections += [turned.real, turned.imag]
    return torch.cat(sections, -1)


def rotary_attention(x, p, heads, base):
    q, k, v = (
        F.linear(x, weight, bias).unflatten(-1, (heads, -1))
        for weight, bias in zip(p["in_proj_weight"], p["in_proj_bias"])
    )
    q, k, v = (t.flatten(1, -3).transpose(1, 2) for t in (rotated(q, base), rotated(k, base), v))
    weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1)
    return linear((weights @ v).transpose(1, 2).reshape(x.shape), below(p, "out_proj"))


def transformer_parameters(width, hidden):
    return {
        **prefixed("norm1", norm_parameters(width)),
        **prefixed("attention", attention_parameters(width)),
        **prefixed("norm2", norm_parameters(width)),
        **prefixed("mlp", mlp_parameters(width, hidden)),
    }


def transformer_block(x, p, heads):
    y = attention(layer_norm(x, below(p, "norm1")), below(p, "attention"), heads)
    x = x + y * p.get("layer_scale1.weight", 1)
    return x + mlp(layer_norm(x, below(p, "norm2")), below(p, "mlp")) * p.get("layer_scale2.weight", 1)


def encoder_layer(x, p, heads):
    """The same by torch.nn.TransformerEncoderLayer."""
    width, hidden = x.shape[-1], p["mlp.fc1.bias"].shape[0]
    layer = torch.nn.TransformerEncoderLayer(
        width, heads, hidden, 0.0, "gelu", LAYER_NORM_EPSILON, batch_first=True, norm_first=True
    )
    names = {"self_attn": "attention", "linear1": "mlp.fc1", "linear2": "mlp.fc2"}
    parameters = {}
    for name, own in layer.named_parameters():
        first, rest = name.split(".", 1)
        parameters[name] = p[f"{names.get(first, first)}.{rest}"].reshape(own.shape)
    return torch.nn.utils.stateless.functional_call(layer, parameters, x.flatten(1, -2)).reshape(x.shape)


def sincos_positions(x, p, base):
    space, channels = x.shape[1:-1], x.shape[-1]
    sections = []
    for axis, extent in enumerate(space):
        half = channels // len(space) // 2
        angles = torch.arange(extent)[:, None] * base ** (-torch.arange(half) / half)
        shape = [1] * (len(space) + 1)
        shape[axis], shape[-1] = extent, 2 * half
        waves = torch.cat([angles.sin(), angles.cos()], -1).reshape(shape)
        sections.append(waves.expand(*space, 2 * half))
    return x + torch.cat(sections, -1)


def relative_bias(table, window):
    """[heads, T, T] as in Swin's own code."""
    axes = torch.meshgrid(*(torch.arange(extent) for extent in window), indexing="ij")
    coordinates = torch.stack(axes).flatten(1)
    relative = (coordinates[:, :, None] - coordinates[:, None, :]).permute(1, 2, 0) + torch.tensor(window) - 1
    index = relative[..., 0] * (2 * window[1] - 1) + relative[..., 1]
    return table[index.flatten()].unflatten(0, index.shape).permute(2, 0, 1)


def windows_of(x, window):
    """[B, H, W, ...] to [B * windows, T, ...]."""
    b, h, w = x.shape[0], x.shape[1] // window[0], x.shape[2] // window[1]
    y = x.reshape(b, h, window[0], w, window[1], *x.shape[3:]).transpose(2, 3)
    return y.reshape(b * h * w, window[0] * window[1], *x.shape[3:])


def windowed_attention(x, p, heads, window, shift, circular):
    (b, h, w, c), (wh, ww) = x.shape, window
    rolled = torch.roll(x, (-shift[0], -shift[1]), (1, 2))
    q, k, v = (
        windows_of(F.linear(rolled, weight, bias).unflatten(-1, (heads, -1)), window).transpose(1, 2)
        for weight, bias in zip(p["in_proj_weight"], p["in_proj_bias"])
    )
    scores = q @ k.transpose(-1, -2) / math.sqrt(c // heads) + relative_bias(
        p["relative_position_bias_table"], window
    )
    # Regions that were not neighbours before the shift do not see one another.
    region = torch.zeros(1, h, w)
    region[:, h - shift[0] :] += 1
    if not circular:
        region[:, :, w - shift[1] :] += 2
    region = windows_of(region, window)
    mask = (region[:, :, None] != region[:, None, :]).repeat(b, 1, 1)
    weights = torch.softmax(scores.masked_fill(mask[:, None], -math.inf), -1)
    y = (weights @ v).transpose(1, 2).reshape(b, h // wh, w // ww, wh, ww, c).transpose(2, 3).reshape(x.shape)
    return torch.roll(linear(y, below(p, "out_proj")), shift, (1, 2))


def windowed_parameters(width, heads, window):
    positions = math.prod(2 * extent - 1 for extent in window)
    return {"relative_position_bias_table": randn(positions, heads), **attention_parameters(width)}


def write_attention(folder):
    with create(folder, "attention.h5") as file:
        layer_case(file, "attention", attention, randn(2, 3, 5, 6), attention_parameters(6), heads=3)
        layer_case(file, "attention_1d", attention, randn(3, 7, 8), attention_parameters(8), heads=2)
        layer_case(file, "attention_3d", attention, randn(1, 2, 3, 3, 4), attention_parameters(4), heads=1)
        layer_case(
            file,
            "rotary_attention",
            rotary_attention,
            randn(2, 4, 3, 16),
            attention_parameters(16),
            heads=2,
            base=100.0,
        )
        parameters = transformer_parameters(6, 9)
        layer_case(file, "transformer_block", encoder_layer, randn(2, 3, 5, 6), parameters, heads=2)
        scales = {"layer_scale1.weight": randn(6), "layer_scale2.weight": randn(6)}
        layer_case(
            file, "transformer_block_scaled", transformer_block, randn(2, 3, 5, 6), {**parameters, **scales}, heads=2
        )
        layer_case(file, "sincos_positions", sincos_positions, randn(2, 3, 5, 12), {}, base=10000.0)
        for name, shift, circular in (
            ("windowed_attention", (0, 0), False),
            ("windowed_attention_shifted", (1, 2), False),
            ("windowed_attention_circular", (1, 1), True),
        ):
            layer_case(
                file,
                name,
                windowed_attention,
                randn(2, 4, 9, 6),
                windowed_parameters(6, 2, (2, 3)),
                heads=2,
                window=(2, 3),
                shift=shift,
                circular=circular,
            )


# ---------------------------------------------------------------- field_layers.h5 and unet*.h5: fields [B, space..., C]

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
CONV_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX_POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGE_POOL = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def to_channels_first(x):
    return x.movedim(-1, 1)


def to_channels_last(x):
    return x.movedim(1, -1)


def pad_field(x, points, mode):
    """x [B, C, space...]; one number of points for all dims."""
    mode = "constant" if mode == "zeros" else mode
    return F.pad(x, [points] * (2 * (x.dim() - 2)), mode=mode)


def conv(x, p, padding=0, padding_mode="zeros", **options):
    x = pad_field(to_channels_first(x), padding, padding_mode)
    return to_channels_last(CONV[x.dim() - 2](x, p["weight"], p.get("bias"), **options))


def conv_transpose(x, p, size=None, **options):
    y = to_channels_last(
        CONV_TRANSPOSE[x.dim() - 2](to_channels_first(x), p["weight"], p.get("bias"), **options)
    )
    return y if size is None else y[:, : size[0], : size[1]]


def max_pool(x, p, **options):
    return to_channels_last(MAX_POOL[x.dim() - 2](to_channels_first(x), **options))


def avg_pool(x, p, **options):
    return to_channels_last(AVERAGE_POOL[x.dim() - 2](to_channels_first(x), **options))


def global_avg_pool(x, p):
    return x.mean(tuple(range(1, x.dim() - 1)), keepdim=True)


def upsample(x, p, mode, **options):
    align = {} if mode == "nearest" else {"align_corners": False}
    return to_channels_last(F.interpolate(to_channels_first(x), mode=mode, **options, **align))


def pad_layer(x, p, low, high, mode):
    """Asymmetric padding of two spatial dims."""
    widths = [low[1], high[1], low[0], high[0]]
    return to_channels_last(F.pad(to_channels_first(x), widths, mode="constant" if mode == "zeros" else mode))


def globe(x, p):
    """3 x 3 convolution of a cell-centred globe: longitude around, rows across the poles."""
    half = x.shape[2] // 2
    north, south = x[:, :1].roll(half, 2), x[:, -1:].roll(half, 2)
    x = torch.cat([north, x, south], 1)
    x = torch.cat([x[:, :, -1:], x, x[:, :, :1]], 2)
    return conv(x, p)


def globe_with_poles(x, p):
    """The same where the first and last rows are the poles themselves."""
    half = x.shape[2] // 2
    north, south = x[:, 1:2].roll(half, 2), x[:, -2:-1].roll(half, 2)
    x = torch.cat([north, x, south], 1)
    x = torch.cat([x[:, :, -1:], x, x[:, :, :1]], 2)
    return conv(x, p)


def concat_skip(x, p):
    """[x, layers(x)] over channels: halved, convolved, doubled, cropped to odd extents."""
    y = max_pool(x, p, kernel_size=2, ceil_mode=True)
    y = conv(y, below(p, "1"), padding=1)
    y = upsample(y, p, "nearest", scale_factor=2)
    return torch.cat([x, y[:, : x.shape[1], : x.shape[2]]], -1)


def conv_parameters(*shape):
    fan_in = math.prod(shape[1:])
    return {"weight": randn(*shape, scale=1 / math.sqrt(fan_in)), "bias": randn(shape[0], scale=0.1)}


def conv_transpose_parameters(channels, features, *kernel, groups=1):
    weight = randn(channels, features // groups, *kernel, scale=1 / math.sqrt(features))
    return {"weight": weight, "bias": randn(features, scale=0.1)}


def write_field_layers(folder):
    with create(folder, "field_layers.h5") as file:

        def case(name, function, x, parameters=None, **arguments):
            def run(values, p):
                return function(values, p, **arguments)

            layer_case(file, name, run, x, parameters or {})

        field = randn(3, 5, 6, 4)
        case("conv", conv, field, conv_parameters(5, 4, 3, 3), padding=1)
        case("conv_1d", conv, randn(2, 11, 3), conv_parameters(4, 3, 5), padding=2, stride=2)
        case("conv_3d", conv, randn(1, 5, 4, 7, 2), conv_parameters(3, 2, 3, 3, 3), padding=1)
        case("conv_strided", conv, field, conv_parameters(5, 4, 3, 3), padding=1, stride=2)
        case("conv_dilated", conv, field, conv_parameters(3, 4, 3, 3), padding=2, dilation=2)
        case("conv_groups", conv, field, conv_parameters(6, 2, 3, 3), padding=1, groups=2)
        case("conv_depthwise", conv, field, conv_parameters(4, 1, 3, 3), padding=1, groups=4)
        for mode in ("reflect", "replicate", "circular"):
            case(f"conv_{mode}", conv, field, conv_parameters(3, 4, 5, 5), padding=2, padding_mode=mode)
        case("conv_pole_cell", globe, field, conv_parameters(3, 4, 3, 3))
        case("conv_pole_point", globe_with_poles, field, conv_parameters(3, 4, 3, 3))
        transposed = conv_transpose_parameters(4, 3, 2, 2)
        case("conv_transpose", conv_transpose, field, transposed, stride=2)
        case("conv_transpose_cropped", conv_transpose, field, transposed, stride=2, size=(9, 11))
        case(
            "conv_transpose_overlapping",
            conv_transpose,
            field,
            conv_transpose_parameters(4, 6, 3, 3, groups=2),
            stride=2,
            padding=1,
            output_padding=1,
            groups=2,
        )
        case(
            "conv_transpose_3d",
            conv_transpose,
            randn(1, 3, 4, 2, 3),
            conv_transpose_parameters(3, 2, 3, 3, 3),
            stride=2,
            padding=1,
        )
        case("max_pool", max_pool, field, kernel_size=2, ceil_mode=True)
        case("max_pool_overlapping", max_pool, field, kernel_size=3, stride=2, padding=1)
        case("max_pool_3d", max_pool, randn(1, 5, 4, 7, 2), kernel_size=2)
        case("avg_pool", avg_pool, field, kernel_size=2, ceil_mode=True)
        case("avg_pool_padded", avg_pool, field, kernel_size=3, stride=2, padding=1)
        case(
            "avg_pool_uncounted", avg_pool, field, kernel_size=3, stride=2, padding=1, count_include_pad=False
        )
        case("global_avg_pool", global_avg_pool, field)
        case("upsample_nearest", upsample, field, mode="nearest", scale_factor=2)
        case("upsample_linear", upsample, field, mode="bilinear", scale_factor=2)
        case("upsample_size", upsample, field, mode="bilinear", size=(7, 4))
        case("upsample_3d", upsample, randn(1, 3, 4, 2, 3), mode="trilinear", scale_factor=2)
        case("pad", pad_layer, field, low=(1, 0), high=(2, 3), mode="zeros")
        case("pad_reflect", pad_layer, field, low=(2, 1), high=(1, 4), mode="reflect")
        case("concat_skip", concat_skip, field, prefixed("1", conv_parameters(3, 4, 3, 3)))


UNETS = {
    "unet": {"field": (3, 11, 14, 3), "widths": (4, 6, 8), "outputs": 2, "padding": "zeros", "up": "nearest"},
    "unet_circular": {
        "field": (1, 9, 8, 2),
        "widths": (4, 4),
        "outputs": 3,
        "padding": "circular",
        "up": "conv_transpose",
    },
    "unet_3d": {"field": (1, 7, 5, 6, 2), "widths": (4, 6), "outputs": 1, "padding": "zeros", "up": "nearest"},
}
UNET_GROUPS = 2
# As nnU-Net plans one for a volume of thick slices: the names and the shapes of PlainConvUNet's arguments.
PLANNED_UNET = {
    "field": (2, 5, 13, 11, 2),
    "outputs": 3,
    "features_per_stage": (2, 3, 4, 4),
    "kernel_sizes": ((1, 3, 3), (3, 3, 3), (3, 3, 3), (1, 3, 3)),
    "strides": ((1, 1, 1), (1, 2, 2), (2, 2, 2), (1, 3, 2)),
    "n_conv_per_stage": (2, 3, 1, 2),
    "n_conv_per_stage_decoder": (1, 2, 1),  # from the coarsest on
}


def unet_parameters(spec, dims):
    widths, kernel = spec["widths"], (3,) * dims
    parameters = {}

    def convolutions(path, inputs, width):
        for number, channels in ((1, inputs), (2, width)):
            parameters.update(prefixed(f"{path}.conv{number}", conv_parameters(width, channels, *kernel)))
            parameters.update(prefixed(f"{path}.norm{number}", norm_parameters(width)))

    for level, width in enumerate(widths):
        convolutions(f"encoder.{level}", widths[level - 1] if level else spec["field"][-1], width)
    for level in reversed(range(len(widths) - 1)):
        below_width = widths[level + 1]
        if spec["up"] == "conv_transpose":
            up = conv_transpose_parameters(below_width, widths[level], *(2,) * dims)
            parameters.update(prefixed(f"decoder.{level}.up", up))
            below_width = widths[level]
        convolutions(f"decoder.{level}", widths[level] + below_width, widths[level])
    parameters.update(prefixed("head", conv_parameters(spec["outputs"], widths[0], *(1,) * dims)))
    return parameters


def unet(x, p, spec):
    def convolutions(y, q):
        for number in ("1", "2"):
            y = conv(y, below(q, "conv" + number), padding=1, padding_mode=spec["padding"])
            norm = below(q, "norm" + number)
            y = F.group_norm(to_channels_first(y), UNET_GROUPS, norm["weight"], norm["bias"], 1e-5)
            y = to_channels_last(F.gelu(y))
        return y

    skips = []
    for level in range(len(spec["widths"])):
        if level:
            x = max_pool(x, p, kernel_size=2, ceil_mode=True)
        x = convolutions(x, below(p, f"encoder.{level}"))
        skips.append(x)
    for level in reversed(range(len(spec["widths"]) - 1)):
        q, skip = below(p, f"decoder.{level}"), skips[level]
        if spec["up"] == "nearest":
            x = upsample(x, p, "nearest", scale_factor=2)
        else:
            x = conv_transpose(x, below(q, "up"), stride=2)
        for dim in range(1, x.dim() - 1):
            x = x.narrow(dim, 0, skip.shape[dim])
        x = convolutions(torch.cat([skip, x], -1), q)
    return conv(x, below(p, "head"))


class ConvolutionStage(torch.nn.Sequential):
    """So many of convolution, instance norm and leaky ReLU, the first convolution with the stride."""

    def __init__(self, inputs, features, kernel, stride, count):
        layers = []
        for number in range(count):
            layers.append(
                torch.nn.Conv3d(
                    inputs if number == 0 else features,
                    features,
                    kernel,
                    stride if number == 0 else 1,
                    padding=tuple((k - 1) // 2 for k in kernel),
                )
            )
            layers.append(torch.nn.InstanceNorm3d(features, eps=1e-5, affine=True))
            layers.append(torch.nn.LeakyReLU())
        super().__init__(*layers)

    def named(self, path):
        names = {}
        for number in range(len(self) // 3):
            for kind, layer in (("conv", self[3 * number]), ("norm", self[3 * number + 1])):
                for which in ("weight", "bias"):
                    names[f"{path}.{kind}{number + 1}.{which}"] = getattr(layer, which)
        return names


class PlannedUNet(torch.nn.Module):
    """nnU-Net's PlainConvUNet, but skips stand before what comes up, which is cropped to their points."""

    def __init__(self, spec):
        super().__init__()
        features, kernels, strides = spec["features_per_stage"], spec["kernel_sizes"], spec["strides"]
        inputs = (spec["field"][-1], *features)
        self.encoder = torch.nn.ModuleList(
            ConvolutionStage(inputs[i], features[i], kernels[i], strides[i], spec["n_conv_per_stage"][i])
            for i in range(len(features))
        )
        self.ups, self.decoder = torch.nn.ModuleList(), torch.nn.ModuleList()
        for s in range(1, len(features)):  # from the coarsest on
            below, here = features[-s], features[-(s + 1)]
            count = spec["n_conv_per_stage_decoder"][s - 1]
            self.ups.append(torch.nn.ConvTranspose3d(below, here, strides[-s], strides[-s]))
            self.decoder.append(ConvolutionStage(2 * here, here, kernels[-(s + 1)], 1, count))
        self.head = torch.nn.Conv3d(features[0], spec["outputs"], 1)

    def named(self):
        names, levels = {}, len(self.encoder)
        for i, stage in enumerate(self.encoder):
            names |= stage.named(f"encoder.{i}")
        for s, (up, stage) in enumerate(zip(self.ups, self.decoder)):
            path = f"decoder.{levels - 2 - s}"
            names |= {f"{path}.up.weight": up.weight, f"{path}.up.bias": up.bias} | stage.named(path)
        return names | {"head.weight": self.head.weight, "head.bias": self.head.bias}

    def forward(self, x):
        skips = []
        for stage in self.encoder:
            x = stage(x)
            skips.append(x)
        for s, (up, stage) in enumerate(zip(self.ups, self.decoder)):
            skip = skips[-(s + 2)]
            x = up(x)
            for dim in range(2, x.dim()):
                x = x.narrow(dim, 0, skip.shape[dim])
            x = stage(torch.cat((skip, x), 1))
        return self.head(x)


def planned_unet(x, p, model):
    names = {id(parameter): name for name, parameter in model.named().items()}
    own = {name: p[names[id(parameter)]] for name, parameter in model.named_parameters()}
    return to_channels_last(torch.func.functional_call(model, own, (to_channels_first(x),)))


def write_unets(folder):
    with create(folder, "unets.h5") as file:
        for name, spec in UNETS.items():
            x = randn(*spec["field"])
            parameters = unet_parameters(spec, len(spec["field"]) - 2)
            layer_case(file, name, lambda values, p: unet(values, p, spec), x, parameters)
        model = PlannedUNet(PLANNED_UNET)
        x = randn(*PLANNED_UNET["field"])
        parameters = {name: parameter.detach() for name, parameter in model.named().items()}
        for name, parameter in parameters.items():
            if ".norm" in name:
                parameters[name] = parameter + randn(*parameter.shape, scale=0.2)
        layer_case(file, "unet_planned", lambda values, p: planned_unet(values, p, model), x, parameters)


# ---------------------------------------------------------------- residual_unet.h5

# As nnU-Net's residual encoder presets plan one: the names and the shapes of ResidualEncoderUNet's arguments.
RESIDUAL_UNET = {
    "field": (2, 5, 12, 9, 2),
    "outputs": 3,
    "features_per_stage": (2, 3, 4, 4),
    "kernel_sizes": ((1, 3, 3), (3, 3, 3), (3, 3, 3), (3, 3, 3)),
    "strides": ((1, 1, 1), (1, 2, 2), (2, 2, 2), (2, 2, 1)),
    "n_blocks_per_stage": (1, 2, 2, 1),
    "n_conv_per_stage_decoder": (1, 2, 1),  # from the coarsest on
}


class NormedConvolution(torch.nn.Module):
    """ConvDropoutNormReLU of dynamic_network_architectures, without dropout."""

    def __init__(self, inputs, features, kernel, stride=1, bias=True, nonlinear=True):
        super().__init__()
        padding = tuple((k - 1) // 2 for k in kernel)
        self.conv = torch.nn.Conv3d(inputs, features, kernel, stride, padding, bias=bias)
        self.norm = torch.nn.InstanceNorm3d(features, eps=1e-5, affine=True)
        self.nonlin = torch.nn.LeakyReLU() if nonlinear else torch.nn.Identity()

    def forward(self, x):
        return self.nonlin(self.norm(self.conv(x)))


class BasicBlockD(torch.nn.Module):
    """That of dynamic_network_architectures; extents over a stride are rounded up in the skip, too."""

    def __init__(self, inputs, features, kernel, stride):
        super().__init__()
        self.one = NormedConvolution(inputs, features, kernel, stride)
        self.two = NormedConvolution(features, features, kernel, nonlinear=False)
        self.skip = torch.nn.Sequential()
        if any(s != 1 for s in stride):
            self.skip.append(torch.nn.AvgPool3d(stride, stride, ceil_mode=True))
        if inputs != features:
            self.skip.append(NormedConvolution(inputs, features, (1, 1, 1), bias=False, nonlinear=False))

    def forward(self, x):
        return F.leaky_relu(self.two(self.one(x)) + self.skip(x))


class ResidualEncoderUNet(torch.nn.Module):
    """That of dynamic_network_architectures with all outputs that deep supervision counts, the finest first; but
    skips stand before what comes up, which is cropped to their points."""

    def __init__(self, spec):
        super().__init__()
        features, kernels, strides = spec["features_per_stage"], spec["kernel_sizes"], spec["strides"]
        self.stem = NormedConvolution(spec["field"][-1], features[0], kernels[0])
        self.encoder = torch.nn.ModuleList()
        inputs = features[0]
        for i, count in enumerate(spec["n_blocks_per_stage"]):
            stage = torch.nn.Sequential()
            for number in range(count):
                stride = strides[i] if number == 0 else (1, 1, 1)
                stage.append(BasicBlockD(inputs, features[i], kernels[i], stride))
                inputs = features[i]
            self.encoder.append(stage)
        self.ups, self.decoder, self.heads = (torch.nn.ModuleList() for _ in range(3))
        for s in range(1, len(features)):  # from the coarsest on
            here = features[-(s + 1)]
            self.ups.append(torch.nn.ConvTranspose3d(features[-s], here, strides[-s], strides[-s]))
            stage = torch.nn.Sequential()
            for number in range(spec["n_conv_per_stage_decoder"][s - 1]):
                stage.append(NormedConvolution(here if number else 2 * here, here, kernels[-(s + 1)]))
            self.decoder.append(stage)
            if s > 1:  # the coarsest one has no weight
                self.heads.append(torch.nn.Conv3d(here, spec["outputs"], 1))

    def named(self):
        names, last = {}, len(self.decoder) - 1

        def add(path, module):
            for name, parameter in module.named_parameters():
                names[f"{path}.{name}"] = parameter

        def add_convolution(path, number, module):
            for kind in ("conv", "norm"):
                add(f"{path}.{kind}{number}", getattr(module, kind))

        add_convolution("encoder.0.stem", "", self.stem)
        for i, stage in enumerate(self.encoder):
            for number, block in enumerate(stage):
                path = f"encoder.{i}.block{number + 1}"
                add_convolution(path, 1, block.one)
                add_convolution(path, 2, block.two)
                for layer in block.skip:
                    if isinstance(layer, NormedConvolution):
                        add_convolution(f"{path}.skip", "", layer)
        for s, stage in enumerate(self.decoder):
            add(f"decoder.{last - s}.up", self.ups[s])
            for number, layer in enumerate(stage):
                add_convolution(f"decoder.{last - s}", number + 1, layer)
            if s > 0:
                add("head" if s == last else f"decoder.{last - s}.head", self.heads[s - 1])
        return names

    def forward(self, x):
        skips, outputs = [], []
        x = self.stem(x)
        for stage in self.encoder:
            x = stage(x)
            skips.append(x)
        for s, (up, stage) in enumerate(zip(self.ups, self.decoder)):
            skip = skips[-(s + 2)]
            x = up(x)
            for dim in range(2, x.dim()):
                x = x.narrow(dim, 0, skip.shape[dim])
            x = stage(torch.cat((skip, x), 1))
            if s > 0:
                outputs.append(self.heads[s - 1](x))
        return outputs[::-1]


def region_losses(logits, regions):
    """Binary cross entropy and Dice of each region, their mean: [B, D, H, W, R] and as many of 0 and 1."""
    entropy = F.binary_cross_entropy_with_logits(logits, regions)
    p, t = logits.sigmoid().flatten(1, 3), regions.flatten(1, 3)
    overlap = (2 * (p * t).sum(1) + DICE_SMOOTHING) / (p.sum(1) + t.sum(1) + DICE_SMOOTHING)
    return entropy + (1 - overlap).mean()


def supervised(outputs, target, loss):
    """nnU-Net's deep supervision: losses on targets of nearest points, each coarser one half as much as the last."""
    weights = 0.5 ** torch.arange(len(outputs))
    total = 0
    for output, weight in zip(outputs, weights / weights.sum()):
        nearest = F.interpolate(to_channels_first(target.double()), output.shape[2:], mode="nearest-exact")
        total = total + weight * loss(to_channels_last(output), to_channels_last(nearest))
    return total


def write_residual_unet(folder):
    with create(folder, "residual_unet.h5") as file:
        model = ResidualEncoderUNet(RESIDUAL_UNET)
        x = randn(*RESIDUAL_UNET["field"])
        parameters = {name: parameter.detach() for name, parameter in model.named().items()}
        for name, parameter in parameters.items():
            if ".norm" in name:
                parameters[name] = parameter + randn(*parameter.shape, scale=0.2)
        finest = {name: value for name, value in parameters.items() if ".head" not in name}

        def outputs(values, p):
            own = {**parameters, **p}
            names = {id(parameter): name for name, parameter in model.named().items()}
            state = {name: own[names[id(parameter)]] for name, parameter in model.named_parameters()}
            return torch.func.functional_call(model, state, (to_channels_first(values),))

        layer_case(file, "residual_unet", lambda values, p: to_channels_last(outputs(values, p)[0]), x, finest)
        save_all(file, "sides", {name: value for name, value in parameters.items() if name not in finest})
        shape = RESIDUAL_UNET["field"][:-1]
        labels = torch.randint(0, RESIDUAL_UNET["outputs"], (*shape, 1))
        regions = torch.randint(0, 2, (*shape, RESIDUAL_UNET["outputs"]))
        weights = torch.ones(RESIDUAL_UNET["outputs"])
        for name, target, loss in (
            ("labels", labels, lambda z, q: class_losses(z, q[..., 0].long(), weights)["dice_cross_entropy"]),
            ("regions", regions, region_losses),
        ):
            learned = {key: value.clone().requires_grad_() for key, value in parameters.items()}
            value = supervised(outputs(x, learned), target, loss)
            value.backward()
            group = file.create_group(name)
            save_all(group, "parameter_gradients", {key: value.grad for key, value in learned.items()})
            save(group, "target", target)
            save(group, "loss", value)


# ---------------------------------------------------------------- weathermixer*.h5

MIXER = {
    "batch": 3,
    "grid": (10, 15),
    "patch": (3, 7),
    "input_channels": 5,
    "output_channels": 2,
    "embed_dim": 16,
    "depth": 2,
    "token_hidden_ratio": 0.5,
    "channel_hidden_ratio": 2.0,
}
TRAINING = {
    "steps": STEPS,
    "warmup_steps": 3,
    "learning_rate": 1e-2,
    "final_learning_rate": 1e-4,
    "betas": BETAS,
    "epsilon": ADAM_EPSILON,
    "weight_decay": WEIGHT_DECAY,
    "clip_norm": CLIP_NORM,
}


def mixer_parameters(options):
    h, w = (math.ceil(extent / size) for extent, size in zip(MIXER["grid"], MIXER["patch"]))
    points = math.prod(MIXER["patch"])
    width, inputs, outputs = MIXER["embed_dim"], MIXER["input_channels"], MIXER["output_channels"]
    token_hidden = round(MIXER["token_hidden_ratio"] * h * w)
    channel_hidden = round(MIXER["channel_hidden_ratio"] * width)
    parameters = prefixed("encoder", linear_parameters(width, inputs * points))
    if options["positions"]:
        parameters["position"] = randn(h, w, width, scale=0.2)
    for i in range(MIXER["depth"]):
        parameters |= prefixed(f"blocks.{i}.token_norm", norm_parameters(width))
        parameters |= prefixed(f"blocks.{i}.token_mixing", token_mixing_parameters(h, w, token_hidden))
        parameters |= prefixed(f"blocks.{i}.channel_norm", norm_parameters(width))
        parameters |= prefixed(f"blocks.{i}.channel_mixing", mlp_parameters(width, channel_hidden))
    if options["final_norm"]:
        parameters |= prefixed("norm", norm_parameters(width))
    parameters |= prefixed("decoder", linear_parameters(outputs * points, width))
    if options["output_map"]:
        parameters["output_map.output.weight"] = randn(outputs, outputs)
        parameters["output_map.input.weight"] = randn(outputs, inputs, scale=0.3)
        parameters["output_map.bias"] = randn(outputs, scale=0.1)
    return parameters


def mixer(x, p):
    y = patch_embed(x, below(p, "encoder"), MIXER["patch"])
    if "position" in p:
        y = y + p["position"]
    for i in range(MIXER["depth"]):
        block = below(p, f"blocks.{i}")
        y = y + token_mixing(layer_norm(y, below(block, "token_norm")), below(block, "token_mixing"))
        y = y + mlp(layer_norm(y, below(block, "channel_norm")), below(block, "channel_mixing"))
    if "norm.weight" in p:
        y = layer_norm(y, below(p, "norm"))
    y = patch_recover(y, below(p, "decoder"), MIXER["patch"], MIXER["grid"])
    if "output_map.bias" in p:
        y = F.linear(y, p["output_map.output.weight"]) + F.linear(
            x, p["output_map.input.weight"], p["output_map.bias"]
        )
    return y


def learning_rate(step):
    """Of the 1-based step: linear warm-up, then cosine over the remaining steps."""
    peak, final = TRAINING["learning_rate"], TRAINING["final_learning_rate"]
    if step <= TRAINING["warmup_steps"]:
        return peak * step / TRAINING["warmup_steps"]
    progress = (step - TRAINING["warmup_steps"]) / (TRAINING["steps"] - TRAINING["warmup_steps"])
    return final + (peak - final) * 0.5 * (1 + math.cos(math.pi * progress))


def write_training(folder, name, network, sizes, initial, options):
    """Ten steps of a network(x, parameters)."""
    parameters = {key: value.clone().requires_grad_() for key, value in initial.items()}
    optimizer = torch.optim.AdamW(
        parameters.values(), lr=1.0, betas=BETAS, eps=ADAM_EPSILON, weight_decay=WEIGHT_DECAY
    )
    inputs = randn(STEPS, sizes["batch"], *sizes["grid"], sizes["input_channels"])
    noise = randn(STEPS, sizes["batch"], *sizes["grid"], sizes["output_channels"], scale=0.1)
    targets = inputs[..., : sizes["output_channels"]] * 0.5 + noise
    point_weights, variable_weights = latitude_weights(sizes["grid"][0]), torch.tensor([1.0, 0.25])
    rates = [learning_rate(step) for step in range(1, STEPS + 1)]
    losses, norms = [], []
    with create(folder, name) as file:
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = rates[step]
            optimizer.zero_grad()
            output = network(inputs[step], parameters)
            loss = mse(output, targets[step], point_weights, variable_weights, torch.ones_like(output))
            loss.backward()
            if step == 0:
                save(file, "output_step_1", output)
                save_all(file, "gradients_step_1", {key: value.grad for key, value in parameters.items()})
            losses.append(loss.item())
            norms.append(torch.nn.utils.clip_grad_norm_(parameters.values(), CLIP_NORM).item())
            optimizer.step()
        for key, value in {**sizes, **TRAINING, **options, "layer_norm_epsilon": LAYER_NORM_EPSILON}.items():
            file.attrs[key] = np.int64(value) if isinstance(value, bool) else value
        save_all(file, "initial_parameters", initial)
        save_all(file, "parameters", parameters)
        for key, value in {
            "inputs": inputs,
            "targets": targets,
            "latitude_weights": point_weights,
            "variable_weights": variable_weights,
            "learning_rate": rates,
            "loss": losses,
            "gradient_norm": norms,
        }.items():
            save(file, key, value)
    print(name, "loss", [f"{x:.4f}" for x in losses], "norm", [f"{x:.3f}" for x in norms])


def write_mixer(folder, name, **options):
    write_training(folder, name, mixer, MIXER, mixer_parameters(options), options)


# ---------------------------------------------------------------- vit.h5

VIT = {
    "batch": 3,
    "grid": (10, 15),
    "patch": (3, 7),
    "input_channels": 5,
    "output_channels": 2,
    "embed_dim": 12,
    "depth": 2,
    "heads": 3,
    "mlp_ratio": 2.0,
}


def vit_parameters():
    h, w = (math.ceil(extent / size) for extent, size in zip(VIT["grid"], VIT["patch"]))
    points, width = math.prod(VIT["patch"]), VIT["embed_dim"]
    parameters = prefixed("encoder", linear_parameters(width, VIT["input_channels"] * points))
    parameters["position"] = randn(h, w, width, scale=0.2)
    for i in range(VIT["depth"]):
        hidden = round(VIT["mlp_ratio"] * width)
        parameters |= prefixed(f"blocks.{i}", transformer_parameters(width, hidden))
    parameters |= prefixed("norm", norm_parameters(width))
    return parameters | prefixed("decoder", linear_parameters(VIT["output_channels"] * points, width))


def vit(x, p):
    y = patch_embed(x, below(p, "encoder"), VIT["patch"]) + p["position"]
    for i in range(VIT["depth"]):
        y = transformer_block(y, below(p, f"blocks.{i}"), VIT["heads"])
    return patch_recover(layer_norm(y, below(p, "norm")), below(p, "decoder"), VIT["patch"], VIT["grid"])


def write_vit(folder):
    write_training(folder, "vit.h5", vit, VIT, vit_parameters(), {})


# ---------------------------------------------------------------- losses.h5

HUBER_DELTA = 0.6
IGNORED = 255
DICE_SMOOTHING = 1.0
CLASS_WEIGHTS = (0.5, 2.0, 1.0, 0.25)


def to_channels_first(x):
    return x.movedim(-1, 1)


def dice(logits, labels, weights):
    """Soft Dice of one sample, logits [1, K, D, H, W]; the weighted mean over classes."""
    valid = labels != IGNORED
    p = logits.softmax(1)[0][:, valid[0]]
    t = F.one_hot(labels[0][valid[0]], logits.shape[1]).T.double()
    overlap = (2 * (p * t).sum(1) + DICE_SMOOTHING) / (p.sum(1) + t.sum(1) + DICE_SMOOTHING)
    return ((1 - overlap) * weights).sum() / weights.sum()


def class_losses(logits, labels, weights):
    """Mean over samples of what torch says of each: [B, D, H, W, K] and [B, D, H, W]."""
    parts = [(to_channels_first(x[None]), q[None]) for x, q in zip(logits, labels)]
    entropy = sum(F.cross_entropy(x, q, weight=weights, ignore_index=IGNORED) for x, q in parts) / len(parts)
    overlap = sum(dice(x, q, weights) for x, q in parts) / len(parts)
    return {"cross_entropy": entropy, "dice": overlap, "dice_cross_entropy": entropy + overlap}


def write_losses(folder):
    """Losses of volumes, [B, D, H, W, C], and their gradients."""
    with create(folder, "losses.h5") as file:
        target = randn(2, 5, 3, 4, 2)
        for name, loss in {
            "mse": F.mse_loss,
            "l1": F.l1_loss,
            "huber": lambda x, y: F.huber_loss(x, y, delta=HUBER_DELTA),
        }.items():
            prediction = randn(2, 5, 3, 4, 2).requires_grad_()
            value = loss(prediction, target)
            value.backward()
            save_all(
                file,
                name,
                {"prediction": prediction, "target": target, "loss": value, "gradient": prediction.grad},
            )
        file["huber"].attrs["delta"] = HUBER_DELTA
        weights = torch.tensor(CLASS_WEIGHTS)
        labels = torch.randint(0, len(CLASS_WEIGHTS), (2, 5, 3, 4))
        labels[torch.rand(2, 5, 3, 4) < 0.15] = IGNORED
        for name in ("cross_entropy", "dice", "dice_cross_entropy"):
            prediction = randn(2, 5, 3, 4, len(CLASS_WEIGHTS), scale=2).requires_grad_()
            value = class_losses(prediction, labels, weights)[name]
            value.backward()
            save_all(
                file,
                name,
                {"prediction": prediction, "target": labels, "loss": value, "gradient": prediction.grad},
            )
            file[name].attrs["class_weights"] = CLASS_WEIGHTS
            file[name].attrs["ignore_index"] = IGNORED
            file[name].attrs["smoothing"] = DICE_SMOOTHING
        # Behind the others, whose random numbers it leaves as they are.
        prediction = randn(2, 5, 3, 4, 2, scale=3).requires_grad_()
        value = (prediction - target).cosh().log().mean()
        value.backward()
        save_all(
            file,
            "log_cosh",
            {"prediction": prediction, "target": target, "loss": value, "gradient": prediction.grad},
        )


# ---------------------------------------------------------------- embeddings.h5


def overlapping_patch_embed(x, p, patch, circular):
    """Conv2d with a kernel larger than its stride; CvT's padding of half of what the kernel has more, rounded
    up, then zeros up to the last patch. The last axis may be a circle instead."""
    kernel = p["weight"].shape[2:]
    x = to_channels_first(x)
    low = [math.ceil((k - size) / 2) for k, size in zip(kernel, patch)]
    if circular:
        x = torch.cat([x[..., x.shape[-1] - low[-1] :], x, x[..., : kernel[-1] - patch[-1] - low[-1]]], -1)
        low[-1] = 0
    places = [math.ceil(extent / size) for extent, size in zip(x.shape[2:], patch)]
    if circular:
        places[-1] = (x.shape[-1] - kernel[-1]) // patch[-1] + 1
    widths = []
    for before, extent, size, k, count in zip(low, x.shape[2:], patch, kernel, places):
        widths = [before, (count - 1) * size + k - before - extent] + widths
    return to_channels_last(CONV[len(patch)](F.pad(x, widths), p["weight"], p["bias"], stride=patch))


def time_embedding(x, p, patch, channels):
    """The mean over space of the channels that tell the time, an MLP with SiLU, added to every patch."""
    phases = x.flatten(1, -2).mean(1)[:, list(channels)]
    time = linear(F.silu(linear(phases, below(p, "fc1"))), below(p, "fc2"))
    return patch_embed(x, below(p, "0"), patch) + time[:, None, None]


def write_embeddings(folder):
    with create(folder, "embeddings.h5") as file:
        for name, field, kernel, patch, circular in (
            ("overlapping_patch_embed", (2, 7, 10, 3), (6, 7), (3, 4), False),
            ("overlapping_patch_embed_circular", (1, 7, 12, 3), (3, 9), (3, 4), True),
            ("overlapping_patch_embed_1d", (3, 11, 2), (5,), (2,), False),
            ("overlapping_patch_embed_3d", (1, 5, 4, 7, 2), (3, 4, 3), (2, 2, 2), False),
        ):
            parameters = conv_parameters(5, field[-1], *kernel)
            layer_case(
                file, name, overlapping_patch_embed, randn(*field), parameters, patch=patch, circular=circular
            )
        parameters = {
            **prefixed("0", linear_parameters(6, 5 * 12)),
            **prefixed("fc1", linear_parameters(6, 3)),
            **prefixed("fc2", linear_parameters(6, 6)),
        }
        x = randn(2, 7, 10, 5)
        layer_case(file, "time_embedding", time_embedding, x, parameters, patch=(3, 4), channels=(1, 3, 4))


# ---------------------------------------------------------------- rollouts.h5

# Six-hourly states across the turn of a year. Training has the first 16 times, validation the others.
ROLLOUT_TIMES, ROLLOUT_TRAIN = 28, 16
ROLLOUT_ORIGIN = datetime.datetime(2019, 12, 30)
ROLLOUT_WEIGHTS = {2: (), 3: (1.0, 0.5, 0.25)}
ROLLOUT_VARIABLE_WEIGHTS = (2.0, 1.0, 1.0, 0.5)  # t2m, z_850, z_500, tp
ROLLOUT_PROGNOSTIC = 3
ROLLOUT_GRIDS = {
    "increment": (np.arange(55.0, 40.0, -2.5), np.arange(-5.0, 15.0, 2.5)),  # a region, from north to south
    "state": (np.arange(-90.0, 91.0, 30.0), np.arange(0.0, 360.0, 30.0)),  # a globe, from south to north
}


def rollout_fields(latitudes, longitudes):
    """Physical values, NaN where missing: t2m, z_500, z_850, tp [T, H, W] and lsm [H, W]."""
    shape = (ROLLOUT_TIMES, len(latitudes), len(longitudes))

    def walk(mean, deviation):
        steps = randn(*shape, scale=0.4)
        return mean + deviation * (randn(*shape[1:]) + steps.cumsum(0))

    fields = {"t2m": walk(280, 8), "z_500": walk(5.5e4, 900), "z_850": walk(1.4e4, 500), "tp": walk(2e-3, 1e-3)}
    fields["lsm"] = torch.rand(*shape[1:])
    fields["t2m"][:, 2, 1] = fields["t2m"][:, 3, 4:6] = math.nan  # as over land
    fields["t2m"][4, 0, 3] = fields["t2m"][20, 5, 0] = math.nan  # gaps
    fields["tp"][9] = fields["tp"][22] = math.nan  # a variable that is not there
    return fields


def valid_moments(values):
    values = values[~torch.isnan(values)]
    return values.mean(), values.std(unbiased=False)


def rollout_statistics(fields):
    """Name to (mean, deviation, deviation of the change over a lead)."""
    statistics = {}
    for name, values in fields.items():
        values = values if name == "lsm" else values[:ROLLOUT_TRAIN]
        change = valid_moments(values[1:] - values[:-1])[1]
        statistics[name] = (*valid_moments(values), change)
    return statistics


def standardised(values):
    values = torch.as_tensor(values)
    return (values - values.mean()) / values.std(unbiased=False)


def rollout_forcings(time, latitudes, longitudes):
    """[H, W, channels] of a forecast that starts, or goes on, from a time."""

    def of_day(moment):
        angle = 2 * math.pi * (moment - moment.replace(hour=0)) / datetime.timedelta(days=1)
        return [math.sin(angle), math.cos(angle)]

    begin, end = datetime.datetime(time.year, 1, 1), datetime.datetime(time.year + 1, 1, 1)
    year = 2 * math.pi * ((time - begin) / (end - begin))
    clock = of_day(time) + of_day(time + datetime.timedelta(hours=6)) + [math.sin(year), math.cos(year)]
    h, w = len(latitudes), len(longitudes)
    channels = [standardised(latitudes)[:, None].expand(h, w)]
    if len(longitudes) == 12:
        angles = torch.deg2rad(torch.as_tensor(longitudes))
        channels += [torch.cos(angles).expand(h, w), torch.sin(angles).expand(h, w)]
    else:
        channels += [standardised(longitudes).expand(h, w)]
    return torch.stack(channels + [torch.full((h, w), value) for value in clock], -1)


def cell_weights(latitudes):
    """Sines of the cells' limits apart; cells of poles end there."""
    half = (latitudes[1] - latitudes[0]) / 2
    limits = np.clip(np.append(latitudes - half, latitudes[-1] + half), -90, 90)
    weights = torch.as_tensor(np.diff(np.sin(np.deg2rad(limits)))).abs()
    return weights / weights.mean()


class RolloutCase:
    def __init__(self, predict):
        self.increment = predict == "increment"
        self.latitudes, self.longitudes = ROLLOUT_GRIDS[predict]
        self.fields = rollout_fields(self.latitudes, self.longitudes)
        self.statistics = rollout_statistics(self.fields)
        self.weights = cell_weights(self.latitudes)
        self.targets = ["t2m", "z_850", "z_500", "tp"]
        self.channels = 2 * ROLLOUT_PROGNOSTIC + 1 + self.forcings(0).shape[-1]

    def forcings(self, time):
        start = ROLLOUT_ORIGIN + datetime.timedelta(hours=6 * time)
        return rollout_forcings(start, self.latitudes, self.longitudes)

    def normalised(self, name, time=None):
        mean, deviation, _ = self.statistics[name]
        return ((self.fields[name] if time is None else self.fields[name][time]) - mean) / deviation

    def prognostic(self, time):
        return torch.stack([self.normalised(name, time) for name in self.targets[:ROLLOUT_PROGNOSTIC]], -1)

    def target(self, start, lead):
        """[H, W, 4], normalised as it is predicted."""
        channels = []
        for name in self.targets:
            if self.increment and name != "tp":
                change = self.fields[name][start + lead] - self.fields[name][start]
                channels.append(change / self.statistics[name][2])
            else:
                channels.append(self.normalised(name, start + lead))
        return torch.stack(channels, -1)

    def run(self, start, leads, p):
        """Predictions of each lead [H, W, 4]: the state, or the change since the start; tp always the state."""
        before, now = self.prognostic(start - 1), self.prognostic(start)
        present = ~torch.isnan(now)
        before, now = torch.nan_to_num(before), torch.nan_to_num(now)
        scales = torch.tensor(
            [self.statistics[n][2] / self.statistics[n][1] for n in self.targets[:ROLLOUT_PROGNOSTIC]]
        )
        predictions, change = [], 0
        for lead in range(leads):
            land = self.normalised("lsm").unsqueeze(-1)
            x = torch.cat([before, now, land, self.forcings(start + lead)], -1)
            y = rollout_network(x.unsqueeze(0), p)[0]
            state, rain = y[..., :ROLLOUT_PROGNOSTIC], y[..., ROLLOUT_PROGNOSTIC:]
            if self.increment:
                change = change + state
                predictions.append(torch.cat([change, rain], -1))
                after = now + state * scales
            else:
                predictions.append(y)
                after = state
            # What was missing at the start is fed as it was then.
            before, now = now, torch.where(present, after, torch.zeros(()))
        return predictions

    def errors(self, prediction, target):
        """Per variable: the weighted mean of squares and of errors over valid points, NaN without any."""
        valid = ~torch.isnan(target)
        weights = self.weights[:, None, None] * valid
        error = torch.where(valid, prediction - torch.nan_to_num(target), torch.zeros(()))
        total = weights.sum((0, 1))
        return (weights * error**2).sum((0, 1)) / total, (weights * error).sum((0, 1)) / total

    def loss(self, starts, leads, p, lead_weights):
        weights = torch.tensor(ROLLOUT_VARIABLE_WEIGHTS)
        total = weight = 0
        for start in starts:
            for lead, prediction in enumerate(self.run(start, leads, p)):
                squares, _ = self.errors(prediction, self.target(start, lead + 1))
                there = ~torch.isnan(squares)
                total = total + lead_weights[lead] * (weights * squares)[there].sum()
                weight = weight + lead_weights[lead] * weights[there].sum()
        return total / weight

    def baseline(self, start):
        """Persistence as a prediction: no change, the same state."""
        state = torch.stack([self.normalised(name, start) for name in self.targets], -1)
        if self.increment:
            state[..., :ROLLOUT_PROGNOSTIC] = 0
        return state

    def scores(self, starts, leads, p):
        """rmse, bias, persistence_rmse [leads, 4] in physical units."""
        scale = torch.tensor([self.statistics[n][2 if self.increment and n != "tp" else 1] for n in self.targets])
        found = {"rmse": [], "bias": [], "persistence_rmse": []}
        for lead in range(leads):
            means = []
            for start in starts:
                prediction, target = self.run(start, leads, p)[lead], self.target(start, lead + 1)
                baseline = self.baseline(start)
                both = torch.where(torch.isnan(baseline), baseline, target)
                persistence, _ = self.errors(torch.nan_to_num(baseline), both)
                means.append(torch.stack([*self.errors(prediction, target), persistence]))
            squares, bias, persistence = torch.stack(means).nanmean(0) * torch.stack([scale**2, scale, scale**2])
            found["rmse"].append(squares.sqrt())
            found["bias"].append(bias)
            found["persistence_rmse"].append(persistence.sqrt())
        return {name: torch.stack(values) for name, values in found.items()}


def rollout_network(x, p):
    hidden = torch.tanh(conv(x, below(p, "layers.0"), padding=1))
    return conv(hidden, below(p, "layers.2"), padding=1)


def write_rollouts(folder):
    with create(folder, "rollouts.h5") as file:
        for predict in ROLLOUT_GRIDS:
            case = RolloutCase(predict)
            group = file.create_group(predict)
            save(group, "latitude", case.latitudes)
            save(group, "longitude", case.longitudes)
            save_all(group, "fields", case.fields)
            save_all(group, "statistics", {name: torch.stack(three) for name, three in case.statistics.items()})
            initial = {
                **prefixed("layers.0", conv_parameters(6, case.channels, 3, 3)),
                **prefixed("layers.2", conv_parameters(4, 6, 3, 3)),
            }
            save_all(group, "parameters", initial)
            for leads, weights in ROLLOUT_WEIGHTS.items():
                p = {key: value.clone().requires_grad_() for key, value in initial.items()}
                starts = range(1, ROLLOUT_TRAIN - leads)
                loss = case.loss(starts, leads, p, weights or [1.0] * leads)
                loss.backward()
                norm = torch.linalg.vector_norm(torch.cat([value.grad.flatten() for value in p.values()]))
                inner = group.create_group(f"leads_{leads}")
                inner.attrs["windows"] = len(starts)
                save(inner, "lead_weights", np.array(weights or [1.0] * leads))
                save(inner, "loss", [loss.item()])
                save(inner, "gradient_norm", [norm.item()])
                save_all(inner, "gradients", {key: value.grad for key, value in p.items()})
                with torch.no_grad():
                    valid = range(ROLLOUT_TRAIN, ROLLOUT_TIMES - leads)
                    save(inner, "valid_loss", [case.loss(valid, leads, p, [1.0] * leads).item()])
                    save_all(inner, "scores", case.scores(valid, leads, p))
                print("rollouts.h5", predict, leads, "loss", loss.item(), "norm", norm.item())


# ---------------------------------------------------------------- spherical.h5 and sfno.h5: fields around the globe


def global_rows(rows, count):
    """Sines of latitude from the north, and weights of an integral over them."""
    if rows == "gauss":
        nodes, weights = np.polynomial.legendre.leggauss(count)
        return nodes[::-1], weights[::-1]
    first, last = (0.0, count - 1.0) if rows == "pole_point" else (0.5, count)
    nodes = np.cos(np.pi * (np.arange(count) + first) / last)
    # The weights that integrate all polynomials of so many points.
    integrals = np.zeros(count)
    integrals[0] = 2
    return nodes, np.linalg.solve(np.polynomial.legendre.legvander(nodes, count - 1).T, integrals)


def harmonics(rows, count, degrees):
    """[m, l, row]: associated Legendre functions of which the mean square over the sphere is 1."""
    nodes, weights = global_rows(rows, count)
    values = np.zeros((degrees, degrees, count))
    for m in range(degrees):
        for l in range(m, degrees):
            norm = math.sqrt((2 * l + 1) * math.factorial(l - m) / math.factorial(l + m))
            values[m, l] = norm * scipy.special.lpmv(m, l, nodes)
    return torch.from_numpy(values), torch.from_numpy(np.ascontiguousarray(weights))


def analysis(x, rows, degrees):
    """[B, H, W, C] to complex [B, m, l, C]."""
    values, weights = harmonics(rows, x.shape[1], degrees)
    orders = torch.fft.rfft(x, dim=2, norm="forward")[:, :, :degrees]
    return torch.einsum("bhmc,mlh->bmlc", orders, (values * weights / 2).to(orders.dtype))


def synthesis(a, rows, size):
    values, _ = harmonics(rows, size[0], a.shape[2])
    orders = torch.einsum("bmlc,mlh->bhmc", a, values.to(a.dtype))
    return torch.fft.irfft(orders, n=size[1], dim=2, norm="forward")


def spherical_conv(x, p, latitudes, degrees):
    weight = torch.view_as_complex(p["weight"].movedim(2, -1).contiguous())
    a = torch.einsum("bmlc,lcn->bmln", analysis(x, latitudes, degrees), weight)
    return synthesis(a, latitudes, x.shape[1:3]) + p["bias"]


def spherical_resample(x, p, latitudes, to_latitudes, size, degrees):
    return synthesis(analysis(x, latitudes, degrees), to_latitudes, size)


def spherical_parameters(degrees, channels, features):
    return {"weight": randn(degrees, channels, 2, features, scale=0.5), "bias": randn(features, scale=0.2)}


def write_spherical(folder):
    with create(folder, "spherical.h5") as file:
        for latitudes, grid, degrees in (
            ("pole_point", (7, 12), 4),
            ("pole_cell", (6, 9), 3),
            ("gauss", (5, 10), 5),
        ):
            layer_case(
                file,
                f"spherical_conv_{latitudes}",
                spherical_conv,
                randn(2, *grid, 3),
                spherical_parameters(degrees, 3, 4),
                latitudes=latitudes,
                degrees=degrees,
            )
        layer_case(
            file,
            "spherical_resample",
            spherical_resample,
            randn(2, 9, 16, 3),
            {},
            latitudes="pole_point",
            to_latitudes="gauss",
            size=(5, 8),
            degrees=4,
        )


SFNO = {
    "batch": 3,
    "grid": (9, 16),
    "input_channels": 5,
    "output_channels": 2,
    "embed_dim": 6,
    "depth": 2,
    "mlp_ratio": 2.0,
    "scale": 2,
}
INNER, DEGREES = (5, 8), 4  # of such a scale


def sfno_parameters():
    width, inputs, outputs = SFNO["embed_dim"], SFNO["input_channels"], SFNO["output_channels"]
    parameters = prefixed("encoder.fc1", linear_parameters(width, inputs))
    parameters |= prefixed("encoder.fc2", linear_parameters(width, width))
    parameters["position"] = randn(*INNER, width, scale=0.2)
    for i in range(SFNO["depth"]):
        parameters |= prefixed(f"blocks.{i}.norm1", norm_parameters(width))
        parameters |= prefixed(f"blocks.{i}.filter", spherical_parameters(DEGREES, width, width))
        parameters |= prefixed(f"blocks.{i}.norm2", norm_parameters(width))
        parameters |= prefixed(f"blocks.{i}.mlp", mlp_parameters(width, round(SFNO["mlp_ratio"] * width)))
    parameters |= prefixed("norm", norm_parameters(width))
    parameters |= prefixed("decoder.fc1", linear_parameters(width, inputs + width))
    return parameters | prefixed("decoder.fc2", linear_parameters(outputs, width))


def sfno(x, p):
    y = spherical_resample(mlp(x, below(p, "encoder")), None, "pole_point", "gauss", INNER, DEGREES)
    y = y + p["position"]
    for i in range(SFNO["depth"]):
        block = below(p, f"blocks.{i}")
        y = y + spherical_conv(layer_norm(y, below(block, "norm1")), below(block, "filter"), "gauss", DEGREES)
        y = y + mlp(layer_norm(y, below(block, "norm2")), below(block, "mlp"))
    y = spherical_resample(layer_norm(y, below(p, "norm")), None, "gauss", "pole_point", SFNO["grid"], DEGREES)
    return mlp(torch.cat([x, y], -1), below(p, "decoder"))


def write_sfno(folder):
    write_training(folder, "sfno.h5", sfno, SFNO, sfno_parameters(), {})


# ---------------------------------------------------------------- command line

# ---------------------------------------------------------------- squeeze_excitation.h5


def squeeze_excitation(x, p, activation):
    """x [B, space..., C]."""
    mean = x.flatten(1, -2).mean(1)
    hidden = activation(linear(mean, below(p, "fc1")))
    factors = torch.sigmoid(linear(hidden, below(p, "fc2")))
    return x * factors.reshape(factors.shape[0], *(1,) * (x.dim() - 2), -1)


def write_squeeze_excitation(folder):
    with create(folder, "squeeze_excitation.h5") as file:
        for name, shape, hidden, activation in (
            ("1d", (3, 7, 6), 3, F.gelu),
            ("2d", (2, 5, 7, 6), 3, F.gelu),
            ("3d", (2, 4, 3, 5, 6), 2, F.relu),
        ):
            parameters = prefixed("fc1", linear_parameters(hidden, 6))
            parameters |= prefixed("fc2", linear_parameters(6, hidden))
            function = lambda x, p, f=activation: squeeze_excitation(x, p, f)
            layer_case(file, name, function, randn(*shape, mean=0.3), parameters)


FILES = {
    "adamw": write_adamw,
    "layers": write_layers,
    "weathermixer": lambda folder: write_mixer(
        folder, "weathermixer.h5", positions=True, final_norm=True, output_map=False
    ),
    "weathermixer_output_map": lambda folder: write_mixer(
        folder, "weathermixer_output_map.h5", positions=False, final_norm=False, output_map=True
    ),
    "losses": write_losses,
    "activations": write_activations,
    "norms": write_norms,
    "field_layers": write_field_layers,
    "unets": write_unets,
    "attention": write_attention,
    "vit": write_vit,
    "embeddings": write_embeddings,
    "rollouts": write_rollouts,
    "spherical": write_spherical,
    "sfno": write_sfno,
    "squeeze_excitation": write_squeeze_excitation,
    "residual_unet": write_residual_unet,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"of {', '.join(FILES)}; default: all")
    arguments = parser.parse_args()
    unknown = set(arguments.files) - set(FILES)
    if unknown:
        parser.error(f"no golden file is called {', '.join(sorted(unknown))}; known: {', '.join(FILES)}")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)  # one order of summation, so that a second run writes the same numbers
    for number, name in enumerate(FILES):
        torch.manual_seed(1000 + number)
        if not arguments.files or name in arguments.files:
            FILES[name](arguments.output)


if __name__ == "__main__":
    main()
