"""What every test shares."""

from hypothesis import settings

# No test is timed: machines that run others beside it are slow at times.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
