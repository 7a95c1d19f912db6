import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.forecaster.aggregation import MLPoly
from tests.support.forecasters import noisy
from tests.support.plain_experts import PlainWeights

EVEN = np.full(3, 1 / 3)
ALL = np.ones(3, dtype=bool)


def walk(weights, values, opinions):
    """Return the mixtures of a walk along values, and the weights at its end."""
    mixtures = []
    for value, said in zip(values, opinions, strict=True):
        mixtures.append(weights.mixed(said[:, None])[:, 0])
        weights = weights.observe(said[:, None], mixtures[-1][:, None], value)
    return np.array(mixtures)[:, 0], weights


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
            ours = ours.observe(said[:, None], mixtures[:, None], value)
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
            weights = weights.observe(said[:, None], mixture[:, None], value=0.0)

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

        said = np.array([[1e200], [0.0], [1.0]])
        after = weights.observe(said, np.array([[1e200]]), value=-1e200)

        np.testing.assert_equal(after.state(), weights.state())

    def test_leads_learn_apart_and_those_without_a_forecast_learn_nothing(self):
        values, opinions = noisy(7, 60)
        both = MLPoly.start(2, EVEN, (20.0,))
        alone = [MLPoly.start(1, EVEN, (20.0,)) for _ in range(2)]

        for i, value in enumerate(values):
            said = np.column_stack([opinions[i], opinions[i][::-1]])
            said[1, 0] = np.nan if i % 7 == 0 else said[1, 0]
            mixed = np.column_stack([alone[h].mixed(said[:, [h]])[:, 0] for h in range(2)])
            mixed[:, 1], said[:, 1] = (np.nan, np.nan) if i % 3 == 0 else (mixed[:, 1], said[:, 1])
            both = both.observe(said, mixed, value)
            for h in range(2 if i % 3 else 1):
                alone[h] = alone[h].observe(said[:, [h]], mixed[:, [h]], value)

        for name, array in both.state().items():
            joint = np.concatenate([each.state()[name] for each in alone], axis=1)
            np.testing.assert_array_equal(array, joint)

    def test_restored_it_continues_and_refuses_other_shapes(self):
        values, opinions = noisy(6, 50)
        start = MLPoly.start(1, EVEN, (20.0,))
        _, before = walk(start, values, opinions)

        restored = start.restore(before.state())

        np.testing.assert_array_equal(restored.weights(ALL), before.weights(ALL))
        with pytest.raises(InvalidInputError, match="experts must have shape"):
            MLPoly.start(2, EVEN, (20.0,)).restore(before.state())
