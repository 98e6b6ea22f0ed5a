"""jigsaw-train's models as PyTorch modules, with the same parameters and the same numbers.

    model = jigsaw_train.models.load("runs/first")                       # a run's or a checkpoint's folder
    model = jigsaw_train.models.load("first.safetensors", "runs/first")  # what `jigsaw-train export` wrote
    y = model(x)

x and y are normalised fields [B, space..., C], their channels as docs/formulas.md orders them.
"""

import math
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

from jigsaw_train.checkpoint import POINTERS, open_checkpoint
from jigsaw_train.layers import (
    Activation,
    Attention,
    ChannelMixing,
    Convolution,
    DropPath,
    PatchEmbed,
    PatchRecover,
    Spreading,
    Time,
    TokenMixing,
    WindowedAttention,
    channels_first,
    channels_last,
    extended,
    sincos_positions,
    zeroed,
)
from jigsaw_train.spherical import Resample, SphericalConvolution, Transform, exact_degrees

EPSILON = 1e-5  # of every norm
MAX_POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGE_POOL = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def ratio(factor, size):
    """factor * size to the nearest integer, halves away from zero."""
    return max(1, math.floor(factor * size + 0.5))


class PatchModel(nn.Module):
    """What weathermixer, vit and swin share: patches, positions and time before the blocks, a decoder behind."""

    def __init__(self, options, inputs, outputs, time_channels, learned, grid):
        super().__init__()
        patch, width = options["patch"], options["embed_dim"]
        self.patches = tuple(-(-extent // size) for extent, size in zip(grid, patch))
        self.encoder = PatchEmbed(inputs, width, patch, options["patch_kernel"], options["circular"])
        if learned:
            self.position = nn.Parameter(torch.empty(*self.patches, width).normal_(std=0.02))
        if options["time_embedding"]:
            self.time = Time(time_channels, width)
        if options["final_norm"]:
            self.norm = nn.LayerNorm(width, EPSILON)
        self.decoder = PatchRecover(width, outputs, patch, options["zero_decoder"])

    def encode(self, x):
        y = self.encoder(x)
        if hasattr(self, "position"):
            y = y + self.position
        return y + self.time(x) if hasattr(self, "time") else y

    def decode(self, y, grid):
        return self.decoder(self.norm(y) if hasattr(self, "norm") else y, grid)


class MixerBlock(nn.Module):
    def __init__(self, patches, width, options):
        super().__init__()
        more = options["activation"], options["dropout"]
        tokens = ratio(options["token_hidden_ratio"], math.prod(patches))
        channels = ratio(options["channel_hidden_ratio"], width)
        self.token_norm, self.token_mixing = nn.LayerNorm(width, EPSILON), TokenMixing(patches, tokens, *more)
        self.channel_norm = nn.LayerNorm(width, EPSILON)
        self.channel_mixing = ChannelMixing(width, channels, *more)

    def forward(self, x):
        x = x + self.token_mixing(self.token_norm(x))
        return x + self.channel_mixing(self.channel_norm(x))


class OutputMap(nn.Module):
    """A linear map over [output, input]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.output = nn.Linear(outputs, outputs, bias=False)
        self.input = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.empty(outputs))
        bound = 1 / math.sqrt(outputs + inputs)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, y, x):
        return self.output(y) + self.input(x) + self.bias


class WeatherMixer(PatchModel):
    """arXiv 2507.05753."""

    def __init__(self, options, inputs, outputs, grid, time_channels=()):
        super().__init__(options, inputs, outputs, time_channels, options["positions"], grid)
        width = options["embed_dim"]
        self.blocks = nn.ModuleList(MixerBlock(self.patches, width, options) for _ in range(options["depth"]))
        if options["output_map"]:
            self.output_map = OutputMap(inputs, outputs)

    def forward(self, x):
        y = self.encode(x)
        for block in self.blocks:
            y = block(y)
        y = self.decode(y, x.shape[1:-1])
        return self.output_map(y, x) if hasattr(self, "output_map") else y


class LayerScale(nn.Module):
    def __init__(self, width, initial):
        super().__init__()
        self.weight = nn.Parameter(torch.full((width,), float(initial)))

    def forward(self, x):
        return x * self.weight


class TransformerBlock(nn.Module):
    """x + attention(norm1(x)), then x + mlp(norm2(x)); what stands in attention's place has a name of its own."""

    def __init__(self, options, attention, drop_path, name="attention"):
        super().__init__()
        self.name = name
        width, scale = options["embed_dim"], options["layer_scale"]
        hidden = ratio(options["mlp_ratio"], width)
        self.norm1 = nn.LayerNorm(width, EPSILON)
        self.add_module(name, attention)
        self.norm2 = nn.LayerNorm(width, EPSILON)
        self.mlp = ChannelMixing(width, hidden, options["activation"], options["dropout"])
        self.layer_scale1 = LayerScale(width, scale) if scale else nn.Identity()
        self.layer_scale2 = LayerScale(width, scale) if scale else nn.Identity()
        self.drop_path = DropPath(drop_path)

    def forward(self, x):
        x = x + self.drop_path(self.layer_scale1(getattr(self, self.name)(self.norm1(x))))
        return x + self.drop_path(self.layer_scale2(self.mlp(self.norm2(x))))


class Transformer(PatchModel):
    """Blocks whose attention a subclass makes."""

    def add_blocks(self, options, attention):
        """attention: of the block's number."""
        last = max(options["depth"] - 1, 1)
        self.blocks = nn.ModuleList(
            TransformerBlock(options, attention(i), options["drop_path"] * i / last)
            for i in range(options["depth"])
        )

    def forward(self, x):
        y = self.encode(x)
        for block in self.blocks:
            y = block(y)
        return self.decode(y, x.shape[1:-1])


class VisionTransformer(Transformer):
    def __init__(self, options, inputs, outputs, grid, time_channels=()):
        self.positions = options["positions"]
        super().__init__(options, inputs, outputs, time_channels, self.positions == "learned", grid)
        base = 10000.0 if self.positions == "rotary" else None
        size = options["embed_dim"], options["heads"], options["attention_dropout"]
        self.add_blocks(options, lambda i: Attention(*size, base))

    def encode(self, x):
        y = super().encode(x)
        return y + sincos_positions(y) if self.positions == "sincos" else y


class Swin(Transformer):
    """Blocks 1, 3, ... shift their windows by half a window."""

    def __init__(self, options, inputs, outputs, grid, time_channels=()):
        super().__init__(options, inputs, outputs, time_channels, False, grid)
        self.add_blocks(
            options,
            lambda i: WindowedAttention(
                options["embed_dim"],
                options["heads"],
                options["window"],
                i % 2 == 1,
                options["circular"],
                options["attention_dropout"],
            ),
        )


class Sfno(nn.Module):
    """arXiv 2306.03838: blocks of spherical convolutions between maps of each point."""

    def __init__(self, options, inputs, outputs, grid, time_channels=()):
        super().__init__()
        width, scale, rows = options["embed_dim"], options["scale"], options["latitudes"]
        activation, depth = options["activation"], options["depth"]
        inner_rows = rows if scale == 1 else "gauss"
        inner = tuple(grid) if scale == 1 else tuple(-(-extent // scale) for extent in grid)
        asked, exact = options["degrees"], exact_degrees(inner_rows, inner)
        of_blocks = Transform(inner_rows, inner, asked or exact)
        self.encoder = ChannelMixing(inputs, width, activation, features=width)
        self.down = self.up = nn.Identity()
        if scale > 1:
            between = asked or min(exact, exact_degrees(rows, grid))
            outer = Transform(rows, grid, between)
            within = of_blocks if between == of_blocks.degrees else Transform(inner_rows, inner, between)
            self.down, self.up = Resample(outer, within), Resample(within, outer)
        if options["positions"]:
            self.position = nn.Parameter(torch.empty(*inner, width).normal_(std=0.02))
        if options["time_embedding"]:
            self.time = Time(time_channels, width)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                options,
                SphericalConvolution(of_blocks, width, width),
                options["drop_path"] * i / max(depth - 1, 1),
                "filter",
            )
            for i in range(depth)
        )
        self.norm = nn.LayerNorm(width, EPSILON) if options["final_norm"] else nn.Identity()
        self.input_skip = options["input_skip"]
        self.decoder = ChannelMixing(width + inputs * self.input_skip, width, activation, features=outputs)
        if options["zero_decoder"]:
            zeroed(self.decoder.fc2)

    def forward(self, x):
        y = self.down(self.encoder(x))
        if hasattr(self, "position"):
            y = y + self.position
        if hasattr(self, "time"):
            y = y + self.time(x)
        for block in self.blocks:
            y = block(y)
        y = self.up(self.norm(y))
        return self.decoder(torch.cat([x, y], -1) if self.input_skip else y)


class Stage(nn.Module):
    """The convolutions of one level, and how it is reached from the level before."""

    def __init__(self, inputs, width, options, kernel, count, edges, crossing=None, stride=1, from_edges=None):
        """stride, from_edges: of the first convolution."""
        super().__init__()
        self.names = [str(number) for number in range(1, count + 1)]
        for name in self.names:
            first = name == "1"
            low, high = from_edges if first and from_edges else edges
            self.add(name, options, Convolution(
                inputs if first else width, width, kernel, stride if first else 1, [n // 2 for n in kernel],
                low, high, crossing=crossing if first else None,
            ))  # fmt: skip

    def add(self, name, options, convolution, activation=None):
        """A convolution, its norm and the activation."""
        width, groups = convolution.weight.shape[0], options["norm_groups"]
        group_count = width if groups == "channels" else groups
        self.add_module("conv" + name, convolution)
        self.add_module("norm" + name, nn.GroupNorm(group_count, width, EPSILON) if groups else nn.Identity())
        self.add_module("activation" + name, Activation(activation or options["activation"], width))

    def run(self, name, x):
        return self.activate(name, getattr(self, "norm" + name)(getattr(self, "conv" + name)(x)))

    def activate(self, name, x):
        return channels_first(getattr(self, "activation" + name)(channels_last(x)))

    def forward(self, x):
        for name in self.names:
            x = self.run(name, x)
        return x


class Point(Stage):
    """One convolution with its norm and, unless it has another, the model's activation."""

    def __init__(self, options, convolution, activation=None):
        nn.Module.__init__(self)
        self.names = [""]
        self.add("", options, convolution, activation)


class Block(Stage):
    """A residual block: activation(norm(conv(activation(norm(conv(x))))) + skip(x))."""

    def __init__(self, inputs, width, options, kernel, edges, crossing=None, stride=1, from_edges=None):
        super().__init__(inputs, width, options, kernel, 2, edges, crossing, stride, from_edges)
        self.stride = stride if stride != 1 and max(stride) > 1 else None
        self.skip = nn.Identity()
        if inputs != width:
            convolution = Convolution(inputs, width, (1,) * len(kernel), bias=False)
            self.skip = Point(options, convolution, "none")

    def forward(self, x):
        pool = AVERAGE_POOL[x.dim() - 2]
        skip = self.skip(pool(x, self.stride, ceil_mode=True) if self.stride else x)
        return self.activate("2", self.norm2(self.conv2(self.run("1", x))) + skip)


class ResidualStage(nn.Module):
    """The residual blocks of one level; at the finest behind a convolution."""

    def __init__(self, inputs, width, options, kernel, count, edges, crossing=None, stem=False, **first):
        super().__init__()
        if stem:
            points = [n // 2 for n in kernel]
            self.stem = Point(options, Convolution(inputs, width, kernel, 1, points, *edges, crossing=crossing))
            inputs, crossing = width, None
        self.blocks = [f"block{number}" for number in range(1, count + 1)]
        for name in self.blocks:
            block = Block(inputs, width, options, kernel, edges, crossing, **first)
            self.add_module(name, block)
            inputs, crossing, first = width, None, {}

    def forward(self, x):
        if hasattr(self, "stem"):
            x = self.stem(x)
        for name in self.blocks:
            x = getattr(self, name)(x)
        return x


def per_axis(value, dims):
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * dims if len(values) == 1 else values


class UNet(nn.Module):
    """Some convolutions a level; extents over a level's stride rounded up, cropped on the way back."""

    def __init__(self, options, inputs, outputs, grid, crossing=None):
        """crossing: factor and offset of each input channel across a pole, where padding_mode crosses one."""
        super().__init__()
        dims = len(grid)
        self.down_by, self.up_by = options["down"], options["up"]
        widths = options["widths"] or [options["base_width"] * 2**i for i in range(options["levels"])]
        if not widths:
            raise ValueError('a model of type "unet" has no levels: give widths, or base_width and levels')
        if options["most_width"]:
            widths = [min(width, options["most_width"]) for width in widths]
        mode = per_axis(options["padding_mode"], dims)
        kernels = options["kernels"] or [options["kernel"]] * len(widths)
        kernels = [per_axis(kernel, dims) for kernel in kernels]
        self.strides = [per_axis(s, dims) for s in options["strides"] or [1] + [2] * (len(widths) - 1)]
        counts = per_axis(options["convolutions"], len(widths))
        back = per_axis(options["decoder_convolutions"] or counts, len(widths))
        self.edges, spaces = [(mode, mode)], [tuple(grid)]
        for stride in self.strides[1:]:
            self.edges.append(self.edges_below(*self.edges[-1], spaces[-1], stride))
            spaces.append(tuple(-(-extent // s) for extent, s in zip(spaces[-1], stride)))
        self.encoder, decoder = nn.ModuleList(), {}
        for level, width in enumerate(widths):
            before, kernel, stride = widths[level - 1] if level else inputs, kernels[level], self.strides[level]
            down = self.down_by == "conv" and level > 0
            first = {}
            if self.down_by == "first_conv" and level > 0:
                first = {"stride": tuple(stride), "from_edges": self.edges[level - 1]}
            kind, count = Stage, counts[level]
            if options["blocks"]:
                kind, count = ResidualStage, per_axis(options["blocks"], len(widths))[level]
                first["stem"] = level == 0
            stage = kind(
                width if down else before, width, options, kernel, count, self.edges[level], crossing, **first
            )
            crossing = None  # what a layer makes of components of vectors are scalars
            if down:
                low, high = self.edges[level - 1]
                stage.down = Convolution(before, width, kernel, tuple(stride), [n // 2 for n in kernel], low, high)
            self.encoder.append(stage)

        def head(width):
            convolution = Convolution(width, outputs, (1,) * dims)
            return zeroed(convolution) if options["zero_head"] else convolution

        for level in range(len(widths) - 1):
            width, below = widths[level], widths[level + 1]
            doubled = width if self.up_by == "conv_transpose" else below
            stage = Stage(width + doubled, width, options, kernels[level], back[level], self.edges[level])
            if self.up_by == "conv_transpose":
                stage.up = Spreading(below, width, self.strides[level + 1])
            if options["deep_supervision"] and 0 < level < len(widths) - 2:
                stage.head = head(width)  # of training
            decoder[str(level)] = stage
        self.decoder = nn.ModuleDict(decoder)
        self.head = head(widths[0])

    def edges_below(self, low, high, space, stride):
        """Where poles lie from the rows of a level, whose finer one has these edges and points."""
        pooled = self.down_by in ("max_pool", "avg_pool")
        low = ["pole_cell" if e == "pole_point" and pooled and s > 1 else e for e, s in zip(low, stride)]
        moved = [(n - 1) % s != 0 for n, s in zip(space, stride)]
        return low, ["pole_cell" if e == "pole_point" and m else e for e, m in zip(high, moved)]

    def pooled(self, x, stage, stride):
        if self.down_by == "first_conv":
            return x
        if self.down_by == "conv":
            return stage.down(x)
        pool = {"max_pool": MAX_POOL, "avg_pool": AVERAGE_POOL}[self.down_by][x.dim() - 2]
        return pool(x, tuple(stride), ceil_mode=True)

    def spread(self, x, stage, space, edges, stride):
        """To the points of the finer level."""
        if self.up_by == "conv_transpose":
            y = stage.up(x)
        elif self.up_by == "nearest":
            y = F.interpolate(x, scale_factor=tuple(stride), mode="nearest")
        else:
            # Around a circle of whole cells interpolation goes on; at other ends the last point stands.
            around = [e == "circular" and s * n == m for e, s, n, m in zip(edges[0], stride, x.shape[2:], space)]
            ends = ["circular" if a else "replicate" for a in around]
            y = extended(x, [1] * len(space), ends, ends)
            y = F.interpolate(y, scale_factor=tuple(stride), mode=LINEAR[len(space)], align_corners=False)
            y = y[(..., *(slice(s, s + extent) for s, extent in zip(stride, space)))]
        return y[(..., *(slice(extent) for extent in space))]

    def forward(self, x):
        x, skips = channels_first(x), []
        for level, stage in enumerate(self.encoder):
            x = stage(self.pooled(x, stage, self.strides[level]) if level else x)
            skips.append(x)
        for level in reversed(range(len(self.decoder))):
            stage, skip = self.decoder[str(level)], skips[level]
            x = self.spread(x, stage, skip.shape[2:], self.edges[level + 1], self.strides[level + 1])
            x = stage(torch.cat([skip, x], 1))
        return channels_last(self.head(x))


# Input channels that tell the time.
TIMES = {f"{wave}_{of}" for wave in ("sin", "cos") for of in ("time_of_day", "day_of_year")}
# What "vector_components": "auto" takes for components of vectors.
COMPONENTS = {
    *("u v u10 v10 u100 v100 10u 10v 100u 100v u10n v10n ua va uas vas ewss nsss tauu tauv").split(),
    *("eastward_wind northward_wind u_component_of_wind v_component_of_wind").split(),
    *(f"{height}m_{axis}_component_of_wind" for height in (10, 100) for axis in "uv"),
}


def crossing_of(configuration, statistics, inputs):
    """Factor and offset of each input channel across a pole: a component of a vector changes its sign in its
    own unit, where its mean is not 0. None where no channel is one.

    inputs: names of the input channels, as Checkpoint.channels has them.
    """
    if configuration["data"]["task"] != "forecast":
        return None
    named = configuration["data"]["vector_components"]
    components = COMPONENTS if named == "auto" else set(named)

    def crosses(channel):
        variable, _, level = channel.rpartition("_")
        return channel in components or (variable in components and level.replace(".", "", 1).isdigit())

    factor = [-1.0 if crosses(channel) else 1.0 for channel in inputs]
    offset = [
        -2 * statistics[channel]["mean"] / statistics[channel]["deviation"] if crosses(channel) else 0.0
        for channel in inputs
    ]
    return (factor, offset) if -1.0 in factor else None


KINDS = {"weathermixer": WeatherMixer, "vit": VisionTransformer, "swin": Swin, "sfno": Sfno, "unet": UNet}
# The program's defaults, as docs/configuration.md has them; None: required.
SIZE = {"embed_dim": None, "depth": None}
PATCHES = {**SIZE, "patch": None, "patch_kernel": [], "circular": False}
POINTS = {"dropout": 0.0, "activation": "gelu", "time_embedding": False, "zero_decoder": False}
BLOCKS = {**POINTS, "mlp_ratio": 4.0, "layer_scale": 0.0, "drop_path": 0.0, "final_norm": True}
ATTENTION = {**PATCHES, **BLOCKS, "heads": None, "attention_dropout": 0.0}
DEFAULTS = {
    "weathermixer": {
        **PATCHES, **POINTS, "token_hidden_ratio": 0.5, "channel_hidden_ratio": 1.0, "positions": False,
        "final_norm": False, "output_map": True,
    },
    "vit": {**ATTENTION, "positions": "learned"},
    "swin": {**ATTENTION, "window": None},
    "sfno": {
        **SIZE, **BLOCKS, "mlp_ratio": 2.0, "latitudes": "pole_point", "scale": 1, "degrees": 0, "positions": False,
        "input_skip": True,
    },
    "unet": {
        "base_width": 0, "levels": 0, "most_width": 0, "widths": [], "kernel": 3, "kernels": [], "strides": [],
        "blocks": [], "convolutions": 2, "decoder_convolutions": [], "norm_groups": 8, "down": "max_pool",
        "up": "nearest", "padding_mode": "zeros", "zero_head": False, "deep_supervision": False, "activation": "gelu",
    },
}  # fmt: skip


def kind_of(options):
    if options.get("type") not in KINDS:
        known = ", ".join(KINDS)
        raise ValueError(f"model.type {options.get('type')!r} has no PyTorch module; those that have are {known}")
    return KINDS[options["type"]]


def build(options, inputs, outputs, grid, time_channels=(), crossing=None):
    """A module of a configuration's "model", untrained. What options lack is the program's default.

    inputs, outputs: channels; grid: points along each spatial axis; time_channels: numbers of the input
    channels that tell the time ("time_embedding"); crossing: see crossing_of().
    """
    kind = kind_of(options)
    options = {**DEFAULTS[options["type"]], **options}
    missing = [key for key, value in options.items() if value is None]
    if missing:
        raise ValueError(f"a model of type {options['type']!r} needs {', '.join(missing)}")
    return kind(options, inputs, outputs, grid, crossing if kind is UNet else time_channels)


def load(weights, run=None, average=None):
    """The model of a checkpoint with its parameters, in their type, in evaluation mode.

    weights: a run directory, a checkpoint as open_checkpoint() takes it, or a safetensors file of
    `jigsaw-train export`.
    run: of a safetensors file or an imported checkpoint the run directory or checkpoint that it came from, for
    configuration, statistics and grid.
    average: True for the moving average of the parameters, False for themselves, None for the average where there is
    one, as `jigsaw-train predict` has it; a safetensors file holds one of them.
    """
    path = pathlib.Path(weights)
    exported = path.is_file() and path.name not in POINTERS
    if exported and run is None:
        raise ValueError(f"{weights} holds parameters alone; give the run directory that it came from, too")
    if exported and average is not None:
        raise ValueError(
            f"{weights} holds one set of weights, which average does not change: `jigsaw-train export --average` "
            "writes the moving average, without it the weights themselves"
        )
    checkpoint = None if exported else open_checkpoint(weights, average)
    origin = checkpoint if run is None else open_checkpoint(run)
    if exported:
        from safetensors.torch import load_file

        state = load_file(weights)
    else:
        state = {name: torch.from_numpy(values) for name, values in checkpoint.items()}
    options, channels = origin.configuration["model"], origin.channels
    last = {UNet: "head.weight", Sfno: "decoder.fc2.weight"}.get(kind_of(options), "decoder.weight")
    outputs = state[last].shape[0]
    targets = 1 if origin.configuration["data"].get("classes", 0) else outputs
    inputs = channels[: len(channels) - targets]
    times = [i for i, name in enumerate(inputs) if name in TIMES]
    crossing = crossing_of(origin.configuration, origin.statistics, inputs)
    # Behind them stand the channels of noise of a model that makes ensembles, which no pole changes.
    ensemble = origin.configuration.get("ensemble", {})
    noise = ensemble.get("local_noise", 0) + ensemble.get("global_noise", 0)
    if crossing:
        crossing = [*crossing[0], *[1.0] * noise], [*crossing[1], *[0.0] * noise]
    model = build(options, len(inputs) + noise, outputs, origin.grid, times, crossing)
    dtype = next(iter(state.values())).dtype
    model.to(dtype).load_state_dict(state)
    return model.eval()
