"""The layers of docs/layers.md in PyTorch, on fields [B, space..., C].

Parameters have the names and shapes of checkpoints, so that load_state_dict() takes a safetensors file of
`jigsaw-train export` as it is. Initial values are those of docs/layers.md.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
CONV_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
ACTIVATION = {
    "none": lambda x: x,
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "mish": F.mish,
    "leaky_relu": F.leaky_relu,
}


def uniform(fan_in, *shape):
    return nn.Parameter(torch.empty(shape).uniform_(-1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in)))


def zeroed(module):
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return module


def channels_first(x):
    return x.movedim(-1, 1)


def channels_last(x):
    return x.movedim(1, -1)


class Activation(nn.Module):
    """The channels of "prelu", which have a slope each, are the last dim."""

    def __init__(self, name, channels):
        super().__init__()
        self.name = name
        if name == "prelu":
            self.slope = nn.Parameter(torch.full((channels,), 0.25))

    def forward(self, x):
        if self.name == "prelu":
            return torch.where(x > 0, x, self.slope * x)
        return ACTIVATION[self.name](x)


class DropPath(nn.Module):
    """In training a sample skips with this probability."""

    def __init__(self, probability):
        super().__init__()
        self.probability = probability

    def forward(self, x):
        if not self.training or self.probability == 0:
            return x
        keep = 1 - self.probability
        return x * x.new_empty((x.shape[0],) + (1,) * (x.dim() - 1)).bernoulli_(keep) / keep


class ChannelMixing(nn.Module):
    """Linear, activation, dropout, linear over channels."""

    def __init__(self, width, hidden, activation="gelu", dropout=0.0, features=None):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, features or width)
        self.activation, self.dropout = Activation(activation, hidden), nn.Dropout(dropout)

    def forward(self, x):
        return self.fc2(self.dropout(self.activation(self.fc1(x))))


class TokenMaps(nn.Module):
    """fc1 or fc2 of token mixing: a linear map whose tokens are the points of the grid."""

    def __init__(self, fan_in, weight, bias):
        super().__init__()
        self.weight, self.bias = uniform(fan_in, *weight), uniform(fan_in, *bias)


class TokenMixing(nn.Module):
    """The same over all points of each channel."""

    def __init__(self, patches, hidden, activation="gelu", dropout=0.0):
        super().__init__()
        self.fc1 = TokenMaps(math.prod(patches), (hidden, *patches), (hidden,))
        self.fc2 = TokenMaps(hidden, (*patches, hidden), patches)
        self.activation, self.dropout = Activation(activation, hidden), nn.Dropout(dropout)

    def forward(self, x):
        y = x.flatten(1, -2).transpose(1, 2)
        y = F.linear(y, self.fc1.weight.flatten(1), self.fc1.bias)
        y = self.dropout(self.activation(y))
        y = F.linear(y, self.fc2.weight.flatten(0, -2), self.fc2.bias.flatten())
        return y.transpose(1, 2).reshape(x.shape)


class PatchEmbed(nn.Module):
    """A linear map of each patch; zeros lie behind the end of the grid.

    With a kernel larger than the patch a convolution whose stride is the patch.
    """

    def __init__(self, channels, width, patch, kernel=(), circular=False):
        super().__init__()
        self.patch, self.kernel, self.circular = tuple(patch), tuple(kernel), circular
        shape = self.kernel or (math.prod(patch),)
        fan_in = channels * math.prod(shape)
        self.weight, self.bias = uniform(fan_in, width, channels, *shape), uniform(fan_in, width)

    def forward(self, x):
        kernel = self.kernel or self.patch
        x = channels_first(x)
        padding = []
        for extent, patch, points in zip(x.shape[2:], self.patch, kernel):
            low = (points - patch + 1) // 2
            high = -(-extent // patch) * patch + points - patch - low - extent
            padding.append((low, high))
        if self.circular and self.kernel:
            low, high = padding[-1]
            parts = [x[..., x.shape[-1] - low :], x] if low else [x]
            x = torch.cat(parts + ([x[..., :high]] if high > 0 else []), -1)
            padding[-1] = (0, min(high, 0))
        x = F.pad(x, [end for ends in reversed(padding) for end in ends])
        weight = self.weight.reshape(*self.weight.shape[:2], *kernel)
        return channels_last(CONV[len(kernel)](x, weight, self.bias, stride=self.patch))


class PatchRecover(nn.Module):
    """A linear map of each patch's channels to its points; what lies beyond the grid is dropped."""

    def __init__(self, width, channels, patch, zero_start=False):
        super().__init__()
        self.patch = tuple(patch)
        points = math.prod(patch)
        self.weight, self.bias = uniform(width, channels, points, width), uniform(width, channels, points)
        if zero_start:
            zeroed(self)

    def forward(self, x, grid):
        patches, dims = x.shape[1:-1], len(self.patch)
        y = torch.einsum("b...n,cpn->b...cp", x, self.weight) + self.bias
        y = y.unflatten(-1, self.patch)  # [B, patches..., C, patch...]
        order = [0] + [d for i in range(dims) for d in (1 + i, 2 + dims + i)] + [1 + dims]
        y = y.permute(order).reshape(x.shape[0], *(n * p for n, p in zip(patches, self.patch)), -1)
        return y[(slice(None), *(slice(extent) for extent in grid))]


class Time(nn.Module):
    """An MLP of the channels that tell the time, averaged over space."""

    def __init__(self, channels, width):
        super().__init__()
        self.channels = list(channels)
        self.fc1, self.fc2 = nn.Linear(len(self.channels), width), nn.Linear(width, width)

    def forward(self, x):
        phases = x.flatten(1, -2).mean(1)[:, self.channels]
        time = self.fc2(F.silu(self.fc1(phases)))
        return time.reshape(time.shape[0], *(1,) * (x.dim() - 2), -1)


def coordinates(extent, x):
    return torch.arange(extent, dtype=x.dtype, device=x.device)


def rates(half, base, x):
    """base^(-i/half), i from 0."""
    return base ** (-coordinates(half, x) / half)


def sincos_positions(x, base=10000.0):
    """One section of channels for each axis: sines, then cosines."""
    space = x.shape[1:-1]
    section = x.shape[-1] // len(space)
    waves = []
    for axis, extent in enumerate(space):
        angles = coordinates(extent, x)[:, None] * rates(section // 2, base, x)
        shape = [1] * len(space) + [section]
        shape[axis] = extent
        waves.append(torch.cat([angles.sin(), angles.cos()], -1).reshape(shape).expand(*space, section))
    return torch.cat(waves, -1)


def rotary(x, base):
    """x [B, space..., heads, d]: pairs (i, i + m/2) of each axis' section turned by coordinate * rate."""
    space, result = x.shape[1:-2], []
    for axis, section in enumerate(x.chunk(len(space), -1)):
        a, b = section.chunk(2, -1)
        angles = coordinates(space[axis], x)[:, None] * rates(a.shape[-1], base, x)
        shape = [1] * x.dim()
        shape[1 + axis], shape[-1] = space[axis], a.shape[-1]
        angles = angles.reshape(shape)
        result += [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()]
    return torch.cat(result, -1)


class Attention(nn.Module):
    """torch.nn.MultiheadAttention of all points, with queries, keys and values apart."""

    def __init__(self, width, heads, dropout=0.0, rotary_base=None):
        super().__init__()
        self.heads, self.dropout, self.rotary_base = heads, dropout, rotary_base
        bound = math.sqrt(6 / (4 * width))
        self.in_proj_weight = nn.Parameter(torch.empty(3, width, width).uniform_(-bound, bound))
        self.in_proj_bias = nn.Parameter(torch.zeros(3, width))
        self.out_proj = nn.Linear(width, width)
        nn.init.zeros_(self.out_proj.bias)

    def projections(self, x):
        """Queries, keys and values, each [B, space..., heads, d]."""
        for weight, bias in zip(self.in_proj_weight, self.in_proj_bias):
            yield F.linear(x, weight, bias).unflatten(-1, (self.heads, -1))

    def attend(self, q, k, v, bias=None):
        """q, k, v [batch, tokens, heads, d]; bias [batch or 1, heads, tokens, tokens]."""
        y = F.scaled_dot_product_attention(
            *(t.transpose(1, 2) for t in (q, k, v)),
            attn_mask=bias,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return y.transpose(1, 2).flatten(2)

    def forward(self, x):
        q, k, v = self.projections(x)
        if self.rotary_base:
            q, k = rotary(q, self.rotary_base), rotary(k, self.rotary_base)
        y = self.attend(*(t.flatten(1, -3) for t in (q, k, v)))
        return self.out_proj(y.reshape(x.shape))


class WindowedAttention(Attention):
    """Attention inside windows with a learned bias by relative position (Swin)."""

    def __init__(self, width, heads, window, shifted=False, circular=False, dropout=0.0):
        super().__init__(width, heads, dropout)
        self.window, self.shifted, self.circular = tuple(window), shifted, circular
        entries = math.prod(2 * extent - 1 for extent in window)
        self.relative_position_bias_table = nn.Parameter(torch.empty(entries, heads).normal_(std=0.02))

    def windows(self, x):
        """[B, space..., rest...] to [B, windows, tokens, rest...]."""
        dims = len(self.window)
        tiles = [n for extent, w in zip(x.shape[1:], self.window) for n in (extent // w, w)]
        y = x.reshape(x.shape[0], *tiles, *x.shape[1 + dims :])
        order = [0, *range(1, 2 * dims, 2), *range(2, 2 * dims + 1, 2), *range(2 * dims + 1, y.dim())]
        return y.permute(order).flatten(1 + dims, 2 * dims).flatten(1, dims)

    def field(self, y, space):
        """The way back: [B, windows, tokens, C] to [B, space..., C]."""
        dims = len(self.window)
        counts = [extent // w for extent, w in zip(space, self.window)]
        y = y.reshape(y.shape[0], *counts, *self.window, y.shape[-1])
        order = [0] + [d for i in range(dims) for d in (1 + i, 1 + dims + i)] + [2 * dims + 1]
        return y.permute(order).reshape(y.shape[0], *space, y.shape[-1])

    def relative_bias(self):
        """[heads, tokens, tokens]."""
        axes = torch.meshgrid(*(torch.arange(extent) for extent in self.window), indexing="ij")
        points = torch.stack(axes).flatten(1)
        index = 0
        for axis, extent in enumerate(self.window):
            offset = points[axis][:, None] - points[axis][None, :] + extent - 1
            index = index * (2 * extent - 1) + offset
        return self.relative_position_bias_table[index].permute(2, 0, 1)

    def regions(self, space, shift):
        """[1, windows, tokens]: what a roll brought round an end has another number."""
        region = torch.zeros(1, *space, dtype=torch.int64)
        for axis, (extent, moved) in enumerate(zip(space, shift)):
            if moved and not (self.circular and axis == len(space) - 1):
                region.narrow(1 + axis, extent - moved, moved).add_(2**axis)
        return self.windows(region)

    def shift_in(self, space):
        """Points by which windows are shifted along each axis: half a window, unless one spans the axis."""
        return [w // 2 if self.shifted and w < extent else 0 for w, extent in zip(self.window, space)]

    def forward(self, x):
        space, axes = x.shape[1:-1], tuple(range(1, x.dim() - 1))
        shift = self.shift_in(space)
        rolled = torch.roll(x, [-moved for moved in shift], axes)
        q, k, v = (self.windows(t).flatten(0, 1) for t in self.projections(rolled))
        bias = self.relative_bias()[None]
        if any(shift):
            region = self.regions(space, shift).to(x.device)
            apart = region[..., :, None] != region[..., None, :]  # [1, windows, tokens, tokens]
            bias = bias.masked_fill(apart[0][:, None], -math.inf).repeat(x.shape[0], 1, 1, 1)
        y = self.attend(q, k, v, bias)
        y = self.field(y.unflatten(0, (x.shape[0], -1)), space)
        return torch.roll(self.out_proj(y), shift, axes)


def beyond(x, axis, points, edge, far, crossing=None):
    """What lies `points` beyond one end of a field [B, C, space...].

    edge: a padding_mode of docs/layers.md. crossing: factor and offset of each channel across a pole.
    """
    extent = x.shape[axis]
    if edge == "zeros":
        shape = list(x.shape)
        shape[axis] = points
        return x.new_zeros(shape)
    index = torch.arange(extent, extent + points) if far else torch.arange(-points, 0)
    pole = edge.startswith("pole_")
    if edge == "circular":
        index = index % extent
    elif edge == "replicate":
        index = index.clamp(0, extent - 1)
    elif edge in ("reflect", "pole_point"):
        index = 2 * (extent - 1) - index if far else -index
    else:  # pole_cell
        index = 2 * extent - 1 - index if far else -index - 1
    part = x.index_select(axis, index.to(x.device))
    if not pole:
        return part
    part = part.roll(x.shape[-1] // 2, -1)
    if crossing is None:
        return part
    shape = (1, -1) + (1,) * (x.dim() - 2)
    factor, offset = (torch.as_tensor(n, dtype=x.dtype, device=x.device).reshape(shape) for n in crossing)
    return part * factor + offset


def extended(x, points, low, high, crossing=None):
    """x [B, C, space...] with `points` more at both ends of each spatial axis."""
    for axis, (count, near, far) in enumerate(zip(points, low, high), start=2):
        if count:
            parts = [beyond(x, axis, count, near, False, crossing), x, beyond(x, axis, count, far, True, crossing)]
            x = torch.cat(parts, axis)
    return x


class Convolution(nn.Module):
    """On [B, C, space...]. points: added at both ends of each axis, as low and high say."""

    def __init__(self, inputs, outputs, kernel, stride=1, points=None, low=(), high=(), crossing=None, bias=True):
        super().__init__()
        fan_in = inputs * math.prod(kernel)
        self.weight = uniform(fan_in, outputs, inputs, *kernel)
        self.bias = uniform(fan_in, outputs) if bias else None
        self.stride, self.points = stride, points or (0,) * len(kernel)
        self.low, self.high, self.crossing = low, high, crossing

    def forward(self, x):
        x = extended(x, self.points, self.low, self.high, self.crossing)
        return CONV[x.dim() - 2](x, self.weight, self.bias, stride=self.stride)


class Spreading(nn.Module):
    """A transposed convolution of as many points as its stride, on [B, C, space...]."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.stride, fan_in = tuple(stride), outputs * math.prod(stride)
        self.weight, self.bias = uniform(fan_in, inputs, outputs, *stride), uniform(fan_in, outputs)

    def forward(self, x):
        return CONV_TRANSPOSE[x.dim() - 2](x, self.weight, self.bias, stride=self.stride)
