"""Writes the small HDF5 and NIfTI files of tests/io/fixtures/images and what h5py and numpy say that they hold.

    python3 tests/io/make_image_fixtures.py

Needs h5py, nibabel and numpy.
"""
import json
import pathlib

import h5py
import nibabel
import numpy

HERE = pathlib.Path(__file__).parent / "fixtures" / "images"
random = numpy.random.default_rng(11)
DEPTH, HEIGHT, WIDTH = 11, 9, 10


def smooth(*extents):
    axes = numpy.meshgrid(*(numpy.linspace(0, 3, n) for n in extents), indexing="ij")
    return sum(numpy.sin((i + 1) * axis + i) for i, axis in enumerate(axes))


def volume(path):
    """A packed volume in a group, in compressed chunks, with labels beside it."""
    with h5py.File(path, "w") as file:
        field = smooth(DEPTH, HEIGHT, WIDTH) + 0.1 * random.standard_normal((DEPTH, HEIGHT, WIDTH))
        stored = numpy.round(field * 400).astype("<i2")
        stored[2, 3, 4] = -32768
        scan = file.create_dataset("scan/density", data=stored, chunks=(4, 5, 3), compression="gzip", shuffle=True)
        scan.attrs["units"] = "g/cm3"
        scan.attrs["scale_factor"] = 0.0025
        scan.attrs["add_offset"] = numpy.float32(1.5)
        scan.attrs["_FillValue"] = numpy.int16(-32768)
        labels = numpy.digitize(field, [-0.5, 0.8]).astype("u1")
        labels[0, 0, :3] = 255
        file["labels"] = labels
        file["comment"] = "not a number"
        file["turned"] = numpy.ascontiguousarray(field.astype("<f4").transpose(2, 0, 1))  # width, depth, height
        return field.astype("<f4"), stored, labels


def pictures(path):
    """Samples with channels, big-endian floats, and masks without channels."""
    with h5py.File(path, "w") as file:
        images = (smooth(5, HEIGHT, WIDTH, 3) + 0.2 * random.standard_normal((5, HEIGHT, WIDTH, 3))).astype(">f8")
        file["images"] = images
        masks = (images[..., 0] > 0).astype("<i8")
        file["masks"] = masks
        return images, masks


def nifti(path):
    """int16 of [5, 4, 3] points from right to left, from back to front and from below to above, scaled."""
    i, j, k = numpy.indices((5, 4, 3))
    image = nibabel.Nifti1Image((100 * k + 10 * j + i).astype("<i2"),
                                [[-0.5, 0, 0, 8], [0, 1.5, 0, -2], [0, 0, 2.5, 1], [0, 0, 0, 1]])
    image.header.set_slope_inter(0.5, -10)
    nibabel.save(image, path)


def plain(values):
    return [None if numpy.isnan(x) else float(x) for x in numpy.asarray(values, dtype="f8").ravel()]


def statistics(values):
    return {"mean": float(numpy.nanmean(values)), "deviation": float(numpy.nanstd(values)),
            "largest": float(numpy.nanmax(values))}


def main():
    HERE.mkdir(exist_ok=True)
    field, stored, labels = volume(HERE / "volume.h5")
    images, masks = pictures(HERE / "pictures.h5")
    nifti(HERE / "volume.nii")
    nifti(HERE / "volume.nii.gz")
    density = stored * 0.0025 + 1.5
    density[stored == -32768] = numpy.nan
    expected = {
        "h5py": h5py.__version__, "numpy": numpy.__version__,
        "density": plain(density), "turned": plain(field), "labels": plain(labels),
        "images": plain(images), "masks": plain(masks),
        "statistics": {"density": statistics(density[:7]), "images_1": statistics(images[:4, ..., 1])},
        "largest": float(numpy.nanmax(density[:9])),
    }
    (HERE / "expected.json").write_text(json.dumps(expected) + "\n")


main()
