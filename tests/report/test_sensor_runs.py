"""Names and labels of the figures of a report."""

from streamridge.hyperparameters.space import GroupNames
from streamridge.report.sensor_runs import NameGroups, feature_labels


def test_names_are_grouped_by_figure():
    groups = NameGroups.of(
        [
            GroupNames("weight", "weight", ("weight.matern", "weight.linear")),
            GroupNames("matern.inverse_scales", "scale", ("matern.inverse_scales[0]",)),
            GroupNames("rate", "rate", ("rate",)),
            GroupNames("inner.weight", "weight", ("inner.weight.a",)),
        ]
    )

    assert groups.weights == {
        "weight": ("weight.matern", "weight.linear"),
        "inner.weight": ("inner.weight.a",),
    }
    assert groups.indexed == {"matern.inverse_scales": ("matern.inverse_scales[0]",)}
    assert groups.others == ("rate",)


def test_features_are_numbered_if_names_do_not_match():
    assert feature_labels(1, ["a", "b"]) == ("feature 1",)
