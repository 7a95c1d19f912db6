import numpy as np

from streamridge import Step


def test_the_error_of_a_step_is_actual_less_forecast():
    assert Step(time=1.0, forecast=np.array([3.0, 9.0]), actual=5.0).error == 2.0
