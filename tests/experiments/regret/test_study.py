import json
from dataclasses import replace

import numpy as np
import pytest

from streamridge import ConstantStep, LazyDescent, OnlineLearner, local_regret, projected_gradient
from streamridge.experiments.regret.assumptions import (
    Constants,
    mean_projections,
    measure_bounds,
    measure_constants,
    measure_variation,
    random_point,
)
from streamridge.experiments.regret.game import (
    Game,
    Play,
    play_lazily,
    play_leader,
    play_still,
    synthetic_game,
)
from streamridge.experiments.regret.page import plot_refits, plot_regret
from streamridge.experiments.regret.study import run_regret
from streamridge.plots.axes import new_figure
from tests.support.studies import ETA, TOY_REGRET, N, T


def ignore(done, total):
    pass


@pytest.fixture(scope="module")
def game():
    return synthetic_game(N, T, np.random.default_rng(3))


@pytest.fixture(scope="module")
def study():
    return run_regret(TOY_REGRET, seed=3)


def curve(study, name):
    return next(each for each in study.curves if each.name.startswith(name))


def squared_error(game: Game, t, z):
    """Return f_t(z) by a refit of its own."""
    train, step = game.samples[t : t + N], game.samples[t + N : t + N + 1]
    fit = game.model.fit(train, np.exp(z))
    return float(np.square(step.y - fit.predict(step.inputs)).sum())


def test_the_gradient_of_a_cost_is_the_slope_of_the_refitted_error(game):
    z = np.log([0.3, 0.2])

    seen = game.reveal(7, z)

    h = 1e-5
    slopes = [
        (squared_error(game, 7, z + step) - squared_error(game, 7, z - step)) / (2 * h)
        for step in h * np.eye(2)
    ]
    np.testing.assert_allclose(seen.gradient, slopes, rtol=1e-6)
    assert seen.error**2 == pytest.approx(squared_error(game, 7, z))


def test_moves_at_every_step_are_algorithm_3_on_the_costs(game):
    descent = LazyDescent.start(game.start, game.chart.feasible, ConstantStep(ETA), update_every=1)
    points, gradients = [], []
    for t in range(game.steps):
        points.append(descent.z)
        gradients.append(game.reveal(t, descent.z).gradient)
        descent = descent.add(gradients[-1]).move()

    play = play_lazily(game, ETA, 1, ignore)

    np.testing.assert_allclose(play.iterates, points, rtol=1e-9)
    np.testing.assert_allclose(play.gradients, gradients, rtol=1e-7, atol=1e-12)


def test_the_curve_of_lazy_descent_is_the_regret_of_its_gradients(study):
    game = synthetic_game(N, T, np.random.default_rng(3))
    seen = []
    learner = OnlineLearner(
        game.model,
        game.history,
        train_size=N,
        update_every=4,
        step=ConstantStep(ETA),
        watch=lambda z, gradients: seen.extend((z, g) for g in gradients),
    )
    for t, x, y in zip(game.stream.t, game.stream.x, game.stream.y[:, 0], strict=True):
        learner.observe(t, x, y)

    total = sum(
        np.square(projected_gradient(z, g, ETA, game.chart.feasible)).sum() for z, g in seen
    )

    lazy = curve(study, "lazy, m = 4")
    assert lazy.times[-1] == T
    assert lazy.regret[-1] == pytest.approx(total / T)


def test_late_regret_uses_the_second_half_and_rmse_all_steps(game, study):
    lazy = curve(study, "lazy, m = 4")
    total = dict(zip(lazy.times.tolist(), lazy.regret * lazy.times, strict=True))

    play = play_lazily(game, ETA, 4, ignore)

    assert lazy.late_regret == pytest.approx((total[T] - total[T // 2]) / (T // 2))
    assert lazy.rmse == pytest.approx(np.sqrt(np.mean(play.errors**2)))


def test_fresh_regret_uses_refitted_models_at_the_same_points(game, study):
    play = play_lazily(game, ETA, 4, ignore)
    fresh = [game.reveal(t, z).gradient for t, z in enumerate(play.iterates)]

    total = local_regret(play.iterates, fresh, ETA, game.chart.feasible)[-1]

    lazy = curve(study, "lazy, m = 4")
    assert lazy.fresh_regret[-1] == pytest.approx(total / T)
    assert lazy.fresh_regret[-1] != pytest.approx(lazy.regret[-1], rel=1e-3)


def test_lazy_descent_refits_once_per_window_and_the_leader_once_per_gradient(study):
    refits = {each.name: each.refits for each in study.curves}
    gradients = {each.name: each.gradients for each in study.curves}

    leader = refits["smoothed leader, w = 4"]
    assert refits["lazy, m = 1"] == 1 + T
    assert refits["lazy, m = 4"] == 1 + T // 4
    assert gradients["lazy, m = 4"] == T
    assert leader == gradients["smoothed leader, w = 4"]
    assert leader > 2 * refits["lazy, m = 1"]


class CountedGame(Game):
    """Remembers where it was asked."""

    def reveal(self, t, z):
        self.asked.append((t, tuple(z)))
        return super().reveal(t, z)


def test_the_leader_counts_every_refit_and_repeats_none(game):
    counted = CountedGame(game.model, game.samples, game.train_size)
    object.__setattr__(counted, "asked", [])

    play = play_leader(counted, ETA, 4, 0.4, ignore)

    assert play.refits == len(counted.asked) == len(set(counted.asked))


def test_the_method_that_never_moves_plays_the_start(game):
    play = play_still(game, ignore)

    assert (play.iterates == game.start).all()
    assert play.moves == 0


def test_constants_bound_all_plays(game, study):
    plays = [play_lazily(game, ETA, m, ignore) for m in (1, 4)] + [play_still(game, ignore)]

    constants = study.constants

    for play in plays:
        assert np.square(play.errors).max() <= constants.largest_cost
        assert np.linalg.norm(play.gradients, axis=1).max() <= constants.lipschitz * (1 + 1e-9)
    assert constants.smoothness >= constants.smoothness_on_path > 0
    assert constants.diameter == pytest.approx(np.hypot(np.log(1e3), np.log(1e2)))


def test_measured_smoothness_is_the_known_curvature_of_a_cost(game):
    class Bowl(Game):
        def reveal(self, t, z):
            return super().reveal(t, z)._replace(gradient=np.array([3.0, -1.0]) * z)

    bowl = Bowl(game.model, game.samples, game.train_size)
    plays = [play_still(game, ignore)]

    constants = measure_constants(bowl, plays, 40, np.random.default_rng(0), ignore)

    assert 2.5 < constants.smoothness <= 3.0 + 1e-9
    assert constants.greatest_rate == 2 / constants.smoothness


def test_the_proposition_holds_with_the_measured_variation(study):
    for bounds in study.bounds:
        lazy = curve(study, f"lazy, m = {bounds.update_every}")
        assert lazy.regret[-1] <= bounds.proposition * (1 + 1e-9)
        assert bounds.proposition_in_print <= bounds.proposition
        assert bounds.proposition <= bounds.theorem


def test_without_variation_the_proposition_is_the_regret(game):
    play = play_lazily(game, ETA, 4, ignore)
    still = np.repeat(play.gradients[::4], 4, axis=0)
    constants = Constants(1.0, 1.0, 1.0, 1.0, 1.0)

    bounds = measure_bounds(game, replace(play, gradients=still), constants, ETA, 0.0)

    regret = local_regret(play.iterates, still, ETA, game.chart.feasible)[-1] / T
    assert bounds.variation == pytest.approx(0.0, abs=1e-20)
    assert bounds.proposition == pytest.approx(regret)
    assert bounds.proposition_in_print == pytest.approx(regret / 4)


def test_the_bounds_of_two_windows_equal_a_calculation_by_hand(game):
    gradients = np.array([[1.0, 0.0], [3.0, 0.0]] * 2)
    points = np.tile(game.start, (4, 1))
    play = Play(points, gradients, np.zeros(4), refits=2, evaluations=4, moves=2, update_every=2)

    bounds = measure_bounds(game, play, Constants(1.0, 1.0, 1.0, 1.0, 1.0), 0.01, 0.0)

    # Two projected means of norm 2, V = 2, and a regret of 1 + 9 + 1 + 9 over 4 steps.
    assert bounds.variation == pytest.approx(2.0)
    assert bounds.proposition == pytest.approx((2 * 8 + 2 * np.sqrt(2 * 2) * 4 + 2 * 2) / 4)
    assert bounds.proposition_in_print == pytest.approx((8 + 2 * np.sqrt(2 * 2) * 4 + 2 * 2) / 4)
    assert bounds.noise_share == pytest.approx(4 / 20)


def test_variation_over_the_set_is_the_largest_of_the_windows_sampled(game, rng):
    class WatchedGame(Game):
        def reveal_window(self, t, m, z):
            seen.append(super().reveal_window(t, m, z))
            return seen[-1]

    seen = []
    watched = WatchedGame(game.model, game.samples, game.train_size)

    largest = measure_variation(watched, 4, 5, rng)

    around_mean = [np.square(g - g.mean(axis=0)).sum() for _, g in seen]
    assert len(seen) == 5
    assert largest == pytest.approx(max(around_mean))


def test_the_theorem_is_its_last_display(game):
    play = play_lazily(game, 0.5, 4, ignore)
    constants = Constants(1.0, lipschitz=3.0, smoothness=2.0, smoothness_on_path=1.0, diameter=5.0)

    bounds = measure_bounds(game, play, constants, 0.5, variation_over_set=16.0)

    # L D / (eta - Q eta^2 / 2) = 60, V / m = 4, and the middle term 2 sqrt(4 * 60).
    assert bounds.theorem_in_print == pytest.approx(15 + 2 * np.sqrt(240) + 4)
    assert bounds.theorem == pytest.approx(60 + 2 * np.sqrt(240) + 4)


def test_a_learning_rate_beyond_its_limit_has_no_bound(study):
    assert study.constants.per_window(1.01 * study.constants.greatest_rate) == np.inf


def test_projected_means_match_the_moves(game):
    play = play_lazily(game, ETA, 4, ignore)

    norms = mean_projections(game, play, ETA)

    moves = np.linalg.norm(np.diff(play.iterates[::4], axis=0), axis=1)
    np.testing.assert_allclose(ETA * norms[:-1], moves, rtol=1e-7)


def test_random_points_lie_in_the_set_and_differ(game, rng):
    points = [random_point(game, rng) for _ in range(20)]

    assert all(game.chart.feasible.contains(point) for point in points)
    assert np.ptp(points, axis=0).min() > 1


def test_results_depend_on_the_seed_only(study):
    again, other = run_regret(TOY_REGRET, seed=3), run_regret(replace(TOY_REGRET, steps=4), seed=4)

    def timeless(records):
        return [{**each, "seconds": 0} for each in records]

    assert timeless(again.records()) == timeless(study.records())
    assert other.curves[0].regret[0] != study.curves[0].regret[0]


def test_records_of_methods_constants_and_bounds_are_plain_values(study):
    records = study.records()

    kinds = [record["kind"] for record in records]
    assert kinds == ["method"] * 4 + ["constants"] + ["bounds"] * 2
    assert json.loads(json.dumps(records)) == records
    assert records[0]["regret"] == study.curves[0].regret.tolist()


def test_progress_is_reported_for_every_method_and_the_assumptions():
    told = {}

    run_regret(
        replace(TOY_REGRET, steps=8), 0, lambda what, done, total: told.update({what: done / total})
    )

    assert set(told.values()) == {1.0}
    assert len(told) == 5 + 1  # costs on fresh models are measured where windows are longer


@pytest.mark.parametrize("draw", [plot_regret, plot_refits])
def test_every_figure_labels_its_axes_names_its_methods_and_returns_them(draw, study):
    axes = new_figure(1).axes[0]

    drawn = draw(axes, study.curves)

    axes.figure.draw_without_rendering()
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert drawn is axes
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert {each.name for each in study.curves} <= {*names}


def test_the_regret_figure_draws_the_regret_of_the_used_models(study):
    axes = plot_regret(new_figure(1).axes[0], study.curves)

    lazy = curve(study, "lazy, m = 4")
    drawn = next(line for line in axes.lines if line.get_label() == lazy.name)
    assert drawn.get_ydata().tolist() == lazy.regret.tolist()


def test_open_points_of_the_refits_figure_are_means_of_all_steps(study):
    axes = plot_refits(new_figure(1).axes[0], study.curves)

    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    drawn = [(*line.get_xdata(), *line.get_ydata()) for line in hollow[: len(study.curves)]]
    assert drawn == [(each.refits, each.regret[-1]) for each in study.curves]
