"""The two clocks of a machine, which tests move by hand."""

from streamridge_service.plan import HOUR, SECOND

START = 500_000 * HOUR


class MachineTimes:
    """The time of day in microseconds, and the steady clock in seconds."""

    def __init__(self):
        self.wall, self.steady = START, 1000.0

    def pass_seconds(self, seconds):
        self.wall += seconds * SECOND
        self.steady += seconds
