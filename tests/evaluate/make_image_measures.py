"""Writes fixtures/image_measures.json: what skimage and scipy say of images that both sides make by formula.

    python3 tests/evaluate/make_image_measures.py

Needs numpy, scipy and scikit-image.
"""
import json
import pathlib

import numpy
import scipy
import skimage
from scipy import ndimage
from skimage import metrics

HERE = pathlib.Path(__file__).parent / "fixtures"


def image(shape, phase):
    axes = numpy.meshgrid(*(numpy.arange(n) for n in shape), indexing="ij")
    return sum(numpy.sin((0.31 + 0.17 * d) * axis + phase + d) for d, axis in enumerate(axes))


def labels(shape, shift):
    """Two balls, classes 1 and 2, and a slab of class 3 at the border of the first dim."""
    axes = numpy.meshgrid(*(numpy.arange(n) for n in shape), indexing="ij")
    result = numpy.zeros(shape, dtype="i4")
    for number, centre, radius in ((1, 0.3, 4.2), (2, 0.7, 3.1)):
        square = sum((axis - centre * n - shift) ** 2 for axis, n in zip(axes, shape))
        result[square <= radius**2] = number
    result[0] = 3 if shift == 0 else result[0]
    return result


def hausdorff95(a, b, spacing):
    """As monai.metrics.compute_hausdorff_distance(percentile=95, directed=False)."""
    if not a.any() or not b.any():
        return None
    edges = [mask ^ ndimage.binary_erosion(mask) for mask in (a, b)]
    worst = []
    for one, other in (edges, edges[::-1]):
        distances = ndimage.distance_transform_edt(~other, sampling=spacing)
        worst.append(numpy.percentile(distances[one], 95))
    return float(max(worst))


def main():
    cases = []
    for shape, spacing in (((23, 19), (0.5, 1.25)), ((15, 13, 17), (3.0, 0.8, 1.1))):
        x, y = image(shape, 0.0), image(shape, 0.0) + 0.3 * image(shape, 1.7)
        ssim = metrics.structural_similarity(
            x, y, data_range=3.5, gaussian_weights=True, sigma=1.5, use_sample_covariance=False)
        psnr = metrics.peak_signal_noise_ratio(x, y, data_range=3.5)
        truth, found = labels(shape, 0), labels(shape, 1)
        distances = [hausdorff95(found == k, truth == k, spacing) for k in (1, 2, 3)]
        surface = [int((mask ^ ndimage.binary_erosion(mask)).sum()) for mask in (truth == 1, truth == 2, truth == 3)]
        cases.append({"shape": shape, "spacing": spacing, "range": 3.5, "ssim": float(ssim), "psnr": float(psnr),
                      "hd95": distances, "surface": surface})
    HERE.mkdir(exist_ok=True)
    versions = {"numpy": numpy.__version__, "scipy": scipy.__version__, "skimage": skimage.__version__}
    text = json.dumps({"versions": versions, "cases": cases}, indent=1)
    (HERE / "image_measures.json").write_text(text + "\n")


main()
