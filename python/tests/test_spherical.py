"""Tables of spherical harmonics, which a module has of its own."""

import pytest
import torch

from jigsaw_train import models, spherical

OPTIONS = {"type": "sfno", "embed_dim": 4, "depth": 3, "scale": 2}
GRID = (9, 16)


@pytest.fixture
def fields():
    return torch.randn(2, *GRID, 3, generator=torch.Generator().manual_seed(1))


def sfno():
    torch.manual_seed(1)
    return models.build(OPTIONS, 3, 2, GRID)


def test_models_can_be_trained_after_inference(fields):
    model = sfno()
    with torch.inference_mode():
        expected = model(fields).clone()
    for trained in (model, sfno()):
        y = trained(fields)
        y.mean().backward()
        assert torch.equal(y, expected)


def test_models_can_be_used_after_export(fields):
    export = pytest.importorskip("torch.export").export
    model = sfno()
    expected = model(fields)
    exported = export(model, (fields,))
    for again in (model, sfno(), exported.module()):
        y = again(fields)
        assert type(y) is torch.Tensor and torch.allclose(y, expected, rtol=0, atol=1e-6)


def test_conversions_do_not_round_tables(fields):
    model = sfno().bfloat16()
    assert torch.isfinite(model(fields.bfloat16())).all()
    double = models.build(OPTIONS, 3, 2, GRID).double()
    double.load_state_dict(model.state_dict())
    error = model.double()(fields.double()) - double(fields.double())
    assert error.abs().max() == 0
    a, b = (transform.values for transform in transforms(model)), (t.values for t in transforms(sfno()))
    assert all(x.dtype == torch.float64 and (x - y.double()).abs().max() < 1e-6 for x, y in zip(a, b))


def test_tables_are_no_part_of_the_state_and_shared_by_blocks():
    model = sfno()
    assert model.state_dict().keys() == dict(model.named_parameters()).keys()
    assert len(transforms(model)) == 2 + (model.down.target is not model.blocks[0].filter.transform)


def transforms(model):
    return [module for module in model.modules() if isinstance(module, spherical.Transform)]
