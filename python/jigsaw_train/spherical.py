"""Spherical harmonics on global grids [B, H, W, C], as docs/layers.md has them."""

import math

import numpy as np
import torch
from torch import nn


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


def exact_degrees(rows, size):
    """Degrees whose coefficients sums over such a grid give exactly."""
    return min(size[0] if rows == "gauss" else (size[0] + 1) // 2, (size[1] + 1) // 2)


class Transform(nn.Module):
    """Between fields [B, H, W, C] and complex coefficients [B, m, l, C]."""

    def __init__(self, rows, size, degrees):
        super().__init__()
        self.size = tuple(size)
        nodes, weights = global_rows(rows, size[0])
        values = legendre(nodes, degrees)
        # They follow from the grid: no buffers, which a conversion to another type would round.
        self.forth, self.back = torch.from_numpy(values * weights / 2), torch.from_numpy(values)

    def analysis(self, x):
        orders = torch.view_as_real(torch.fft.rfft(x, dim=2, norm="forward")[:, :, : self.forth.shape[0]])
        return torch.view_as_complex(torch.einsum("bhmcr,mlh->bmlcr", orders, self.forth.to(orders)).contiguous())

    def synthesis(self, a):
        parts = torch.view_as_real(a)
        orders = torch.einsum("bmlcr,mlh->bhmcr", parts, self.back.to(parts)).contiguous()
        return torch.fft.irfft(torch.view_as_complex(orders), n=self.size[1], dim=2, norm="forward")


class SphericalConvolution(nn.Module):
    """A complex matrix for each degree."""

    def __init__(self, rows, size, degrees, channels, features):
        super().__init__()
        self.transform = Transform(rows, size, degrees)
        weight = torch.empty(degrees, channels, 2, features).normal_(std=1 / math.sqrt(2 * channels))
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(torch.zeros(features))

    def forward(self, x):
        weight = torch.view_as_complex(self.weight.movedim(2, -1).contiguous())
        a = torch.einsum("bmlc,lcn->bmln", self.transform.analysis(x), weight)
        return self.transform.synthesis(a) + self.bias


class Resample(nn.Module):
    """To another grid."""

    def __init__(self, rows, size, to_rows, to_size, degrees):
        super().__init__()
        self.source, self.target = Transform(rows, size, degrees), Transform(to_rows, to_size, degrees)

    def forward(self, x):
        return self.target.synthesis(self.source.analysis(x))
