#!/usr/bin/env python3
"""Writes the golden files that the C++ tests compare against, with PyTorch in float64.

    python3 tests/goldens/generate.py [--output FOLDER] [adamw layers weathermixer ...]

What each file holds is described in README.md beside this script. The references use PyTorch's
own operations (Conv2d, fold, layer_norm, AdamW, clip_grad_norm_), never a formula of this project.
"""

import argparse
import math
import pathlib

import h5py
import numpy as np
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


def adamw_section(file, section, clip_norm):
    initial = adamw_tensors()
    parameters = {name: value.clone().requires_grad_() for name, (value, _, _) in initial.items()}
    optimizer = torch.optim.AdamW(
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
    activations = {"relu": F.relu, "silu": F.silu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}
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


def write_mixer(folder, name, **options):
    initial = mixer_parameters(options)
    parameters = {key: value.clone().requires_grad_() for key, value in initial.items()}
    optimizer = torch.optim.AdamW(
        parameters.values(), lr=1.0, betas=BETAS, eps=ADAM_EPSILON, weight_decay=WEIGHT_DECAY
    )
    inputs = randn(STEPS, MIXER["batch"], *MIXER["grid"], MIXER["input_channels"])
    noise = randn(STEPS, MIXER["batch"], *MIXER["grid"], MIXER["output_channels"], scale=0.1)
    targets = inputs[..., : MIXER["output_channels"]] * 0.5 + noise
    point_weights, variable_weights = latitude_weights(MIXER["grid"][0]), torch.tensor([1.0, 0.25])
    rates = [learning_rate(step) for step in range(1, STEPS + 1)]
    losses, norms = [], []
    with create(folder, name) as file:
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = rates[step]
            optimizer.zero_grad()
            output = mixer(inputs[step], parameters)
            loss = mse(output, targets[step], point_weights, variable_weights, torch.ones_like(output))
            loss.backward()
            if step == 0:
                save(file, "output_step_1", output)
                save_all(file, "gradients_step_1", {key: value.grad for key, value in parameters.items()})
            losses.append(loss.item())
            norms.append(torch.nn.utils.clip_grad_norm_(parameters.values(), CLIP_NORM).item())
            optimizer.step()
        for key, value in {**MIXER, **TRAINING, **options, "layer_norm_epsilon": LAYER_NORM_EPSILON}.items():
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


# ---------------------------------------------------------------- losses.h5

HUBER_DELTA = 0.6
IGNORED = 255
DICE_SMOOTHING = 1.0
CLASS_WEIGHTS = (0.5, 2.0, 1.0, 0.25)


def channels_first(x):
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
    parts = [(channels_first(x[None]), q[None]) for x, q in zip(logits, labels)]
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


# ---------------------------------------------------------------- command line

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
