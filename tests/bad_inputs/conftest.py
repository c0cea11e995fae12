"""How many examples the property tests try: few, and the same each time."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "reprt",
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("reprt")
