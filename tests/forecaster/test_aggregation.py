import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.forecaster.aggregation import MLPoly
from streamridge.forecaster.experts import Experts
from tests.forecaster.plain_experts import PlainExperts, PlainWeights

EVEN = np.full(3, 1 / 3)
ALL = np.ones(3, dtype=bool)


def walk(weights, values, opinions):
    """Return the mixtures of a walk along values, and the weights at its end."""
    mixtures = []
    for value, said in zip(values, opinions, strict=True):
        mixtures.append(weights.mixed(said[:, None])[:, 0])
        weights = weights.observe(0, said, mixtures[-1], value)
    return np.array(mixtures)[:, 0], weights


def noisy(seed, count, deviations=(1.0, 2.0, 3.0)):
    rng = np.random.default_rng(seed)
    values = 10 * np.sin(np.arange(count) / 9)
    return values, values[:, None] + rng.standard_normal((count, len(deviations))) * deviations


class TestMLPoly:
    def test_it_is_what_the_definition_says_with_experts_that_sleep(self):
        values, opinions = noisy(0, 300)
        opinions[50:120, 1] = np.nan
        opinions[200:210, 0] = np.nan
        memories = (20.0, 80.0)
        ours = MLPoly.start(1, EVEN, memories)
        every = [PlainWeights(list(EVEN), memory) for memory in memories]

        for value, said in zip(values, opinions, strict=True):
            weights = ours.weights(~np.isnan(said))[:, 0]
            np.testing.assert_allclose(weights, [plain.of(said) for plain in every], rtol=1e-9)
            mixtures = ours.mixed(said[:, None])[:, 0]
            np.testing.assert_allclose(mixtures, [plain.mix(said) for plain in every])
            ours = ours.observe(0, said, mixtures, value)
            for plain, mixture in zip(every, mixtures, strict=True):
                plain.learn(said, mixture, value)

    @pytest.mark.parametrize("count", [400, 1600, 6400])
    def test_the_regret_against_the_best_expert_grows_like_a_root(self, count):
        values, opinions = noisy(1, count)

        mixtures, _ = walk(MLPoly.start(1, EVEN, memories=(np.inf,)), values, opinions)

        losses = ((values[:, None] - opinions) ** 2).sum(axis=0)
        regret = ((values - mixtures) ** 2).sum() - losses.min()
        assert regret < 4 * np.sqrt(count)

    def test_whoever_fools_it_gains_little(self):
        """Experts whose luck turns as soon as they are trusted."""
        weights, losses, own = MLPoly.start(1, EVEN[:2] * 1.5, memories=(np.inf,)), np.zeros(2), 0.0
        for _ in range(2000):
            trusted = int(np.argmax(weights.weights(ALL[:2])[0, 0]))
            said = np.where(np.arange(2) == trusted, 1.0, 0.0)
            mixture = weights.mixed(said[:, None])[:, 0]
            own, losses = own + float(mixture[0]) ** 2, losses + said**2
            weights = weights.observe(0, said, mixture, value=0.0)

        assert own - losses.min() < 4 * np.sqrt(2000)

    def test_units_do_not_matter(self):
        values, opinions = noisy(2, 200)

        small, large = (
            walk(MLPoly.start(1, EVEN, (50.0,)), unit * values, unit * opinions)[0] / unit
            for unit in (1.0, 1e6)
        )

        np.testing.assert_allclose(small, large)

    def test_after_a_change_the_better_expert_is_trusted_within_the_memory(self):
        values, opinions = noisy(3, 600, (1.0, 9.0, 9.0))
        turned = noisy(4, 100, (9.0, 1.0, 9.0))[1] - noisy(4, 100)[0][:, None]
        _, before = walk(MLPoly.start(1, EVEN, (100.0,)), values, opinions)

        _, after = walk(before, values[:100], values[:100, None] + turned)

        assert before.weights(ALL)[0, 0].argmax() == 0
        assert after.weights(ALL)[0, 0].argmax() == 1

    def test_who_sleeps_keeps_what_was_earned(self):
        values, opinions = noisy(5, 100)
        _, before = walk(MLPoly.start(1, EVEN, (50.0,)), values, opinions)
        opinions[:, 0] = np.nan

        _, after = walk(before, values, opinions)

        assert after.regrets[0, 0, 0] == before.regrets[0, 0, 0]
        assert after.weights(np.array([False, True, True]))[0, 0, 0] == 0.0

    def test_while_no_expert_is_ahead_the_prior_holds(self):
        weights = MLPoly.start(2, np.array([0.7, 0.3]), memories=(10.0,))

        np.testing.assert_allclose(weights.weights(ALL[:2]), [[[0.7, 0.3], [0.7, 0.3]]])
        np.testing.assert_allclose(weights.weights(np.array([False, True])), [[[0, 1], [0, 1]]])

    def test_numbers_too_large_to_square_teach_nothing(self):
        weights = MLPoly.start(1, EVEN, (10.0,))

        after = weights.observe(0, np.array([1e200, 0.0, 1.0]), np.array([1e200]), value=-1e200)

        assert after is weights

    def test_restored_it_goes_on_and_refuses_other_shapes(self):
        values, opinions = noisy(6, 50)
        start = MLPoly.start(1, EVEN, (20.0,))
        _, before = walk(start, values, opinions)

        restored = start.restore(before.state())

        np.testing.assert_array_equal(restored.weights(ALL), before.weights(ALL))
        with pytest.raises(InvalidInputError, match="experts must have shape"):
            MLPoly.start(2, EVEN, (20.0,)).restore(before.state())


class TestExperts:
    NAMES = ("model", "day", "last")

    def lived(self, deviations, count=960):
        """Return the losses of the mixture and of each expert, and the weights at the end."""
        values, opinions = noisy(7, count, deviations)
        experts, losses = Experts.start(self.NAMES, 1, day=96), np.zeros(4)
        for value, said in zip(values, opinions, strict=True):
            heard = experts.heard(said[:, None])
            mixture = experts.mixed(heard)[0]
            losses += (np.append(mixture, said) - value) ** 2
            experts = experts.observe(0, heard[:, 0], mixture, value)
        return losses / count, experts.weights(ALL)[0]

    def test_at_first_the_model_is_trusted_alone(self):
        experts = Experts.start(self.NAMES, 2, day=96)

        np.testing.assert_array_equal(experts.weights(ALL), [[1, 0, 0], [1, 0, 0]])

    def test_where_the_model_is_right_the_others_cost_next_to_nothing(self):
        (mixture, model, *_), weights = self.lived((1.0, 5.0, 5.0))

        assert mixture < 1.01 * model
        assert weights[0] > 0.9

    def test_where_the_model_is_wrong_it_is_left(self):
        (mixture, model, _, last), weights = self.lived((9.0, 5.0, 1.0))

        assert mixture < 1.35 * last < 0.1 * model
        assert weights[2] > 0.9

    def test_weights_sum_to_one_and_none_is_below_zero(self):
        weights = self.lived((1.0, 1.0, 1.0))[1]

        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0).all()

    def test_every_mixture_is_that_of_the_plain_version(self):
        values, opinions = noisy(8, 200)
        opinions[100:110, 2] = np.nan
        ours, plain = Experts.start(self.NAMES, 1, day=24), PlainExperts(3, 1, 24)

        for value, said in zip(values, opinions, strict=True):
            heard = ours.heard(said[:, None])
            mixture = ours.mixed(heard)[0]
            expected, spoken = plain.mix(said[:, None])
            assert mixture == pytest.approx(expected[0])
            np.testing.assert_allclose(ours.weights(~np.isnan(said))[0], plain.weights(said))
            ours = ours.observe(0, heard[:, 0], mixture, value)
            plain.learn(0, said, spoken[0], mixture, value)

    def test_one_lucky_step_of_the_others_leaves_the_model_the_largest_share(self):
        experts = Experts.start(self.NAMES, 1, day=96)
        heard = experts.heard(np.array([[10.0], [12.0], [12.0]]))

        after = experts.observe(0, heard[:, 0], experts.mixed(heard)[0], value=12.0)

        # The model has as much of the vote as each of the three committees, and a say in them.
        assert after.weights(ALL)[0].argmax() == 0
