"""Spherical harmonics on global grids [B, H, W, C], as docs/layers.md has them."""

import functools
import math

import numpy as np
import torch
from torch import nn


MOST_DEGREES = 1900


def wide(x):
    """FFTs are of float32 at least."""
    return x if x.dtype == torch.float64 else x.float()


def global_rows(rows, count):
    """Sines of latitude from the north, and weights of an integral over them."""
    if rows == "gauss":
        nodes, weights = np.polynomial.legendre.leggauss(count)
        return nodes[::-1].copy(), weights[::-1].copy()
    first, last = (0.0, count - 1.0) if rows == "pole_point" else (0.5, count)
    nodes = np.cos(np.pi * (np.arange(count) + first) / last)
    # The weights that integrate all polynomials of so many points.
    integrals = np.zeros(count)
    integrals[0] = 2
    return nodes, np.linalg.solve(np.polynomial.legendre.legvander(nodes, count - 1).T, integrals)


def legendre(nodes, degrees):
    """[m, l, row]: associated Legendre functions of which the mean square over the sphere is 1."""
    values = np.zeros((degrees, degrees, len(nodes)))
    cosine, diagonal = np.sqrt(np.maximum(0, 1 - nodes**2)), np.ones_like(nodes)
    for m in range(degrees):
        if m > 0:
            diagonal = diagonal * cosine * math.sqrt((2 * m + 1) / (2 * m))
        values[m, m] = diagonal
        for l in range(m + 1, degrees):
            a = math.sqrt((4 * l * l - 1) / (l * l - m * m))
            b = math.sqrt(((l - 1) ** 2 - m * m) / (4 * (l - 1) ** 2 - 1))
            before = values[m, l - 2] if l > m + 1 else 0
            values[m, l] = a * (nodes * values[m, l - 1] - b * before)
    return values


@functools.lru_cache(maxsize=None)
def tables(rows, count, degrees):
    """Of analysis and synthesis, [m, l, row], numpy float64."""
    if degrees > MOST_DEGREES:
        raise ValueError(f"{degrees} degrees; above {MOST_DEGREES} functions of high orders leave the range of float64")
    nodes, weights = global_rows(rows, count)
    values = legendre(nodes, degrees)
    return values * weights / 2, values


def exact_degrees(rows, size):
    """Degrees whose coefficients sums over such a grid give exactly."""
    return min(size[0] if rows == "gauss" else (size[0] + 1) // 2, (size[1] + 1) // 2)


class Transform(nn.Module):
    """Between fields [B, H, W, C] and complex coefficients [B, m, l, C], float64 if the module is, else float32.

    Its tables [m, l, row] follow from the grid, so no state_dict holds them. Layers on one grid share one.
    """

    def __init__(self, rows, size, degrees):
        super().__init__()
        self.rows, self.size, self.degrees = rows, tuple(size), degrees
        self.make_tables(torch.empty(0))

    def make_tables(self, like):
        """On the device of a tensor, and of its type."""
        for name, table in zip(("weighted", "values"), tables(self.rows, self.size[0], self.degrees)):
            table = torch.tensor(table, dtype=wide(like).dtype, device=like.device)
            self.register_buffer(name, table, persistent=False)

    def _apply(self, *arguments, **more):
        """Where the module is converted or moved they are made anew: a conversion rounds what it is given."""
        before = self.values
        super()._apply(*arguments, **more)
        if self.values is not before:
            self.make_tables(self.values[:0])
        return self

    def analysis(self, x):
        orders = torch.view_as_real(torch.fft.rfft(x, dim=2, norm="forward")[:, :, : self.degrees])
        return torch.view_as_complex(torch.einsum("bhmcr,mlh->bmlcr", orders, self.weighted).contiguous())

    def synthesis(self, a):
        parts = torch.view_as_real(a)
        orders = torch.einsum("bmlcr,mlh->bhmcr", parts, self.values).contiguous()
        return torch.fft.irfft(torch.view_as_complex(orders), n=self.size[1], dim=2, norm="forward")


class SphericalConvolution(nn.Module):
    """A complex matrix for each degree."""

    def __init__(self, transform, channels, features):
        super().__init__()
        self.transform = transform
        weight = torch.empty(transform.degrees, channels, 2, features).normal_(std=1 / math.sqrt(2 * channels))
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(torch.zeros(features))

    def forward(self, x):
        weight = torch.view_as_complex(wide(self.weight).movedim(2, -1).contiguous())
        a = torch.einsum("bmlc,lcn->bmln", self.transform.analysis(wide(x)), weight)
        return self.transform.synthesis(a).to(x.dtype) + self.bias


class Resample(nn.Module):
    """To another grid; source and target are Transforms of as many degrees."""

    def __init__(self, source, target):
        super().__init__()
        self.source, self.target = source, target

    def forward(self, x):
        return self.target.synthesis(self.source.analysis(wide(x))).to(x.dtype)
