import pytest

from streamridge import ARD, Drifting, KernelRidge, Linear, Mixture, Periodic
from streamridge.tuners.grid import group_name

NESTED = KernelRidge(Drifting(ARD([0.1, 0.2]) + Linear()) + Periodic(9.0, period_bounds=(5, 10)))


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (
            KernelRidge(Mixture([ARD([0.1, 0.2]), ARD([0.3, 0.4])])),
            ["weight", "ard1.inverse_scales", "ard2.inverse_scales", "regularization"],
        ),
        (
            NESTED,
            [
                "weight",
                "drifting.rate",
                "drifting.weight",
                "drifting.ard.inverse_scales",
                "periodic.period",
                "periodic.inverse_scale",
                "regularization",
            ],
        ),
    ],
)
def test_a_group_is_called_by_what_its_names_share(model, names):
    assert [group_name(group) for group in model.space.groups] == names
