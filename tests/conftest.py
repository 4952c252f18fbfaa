from hypothesis import HealthCheck, settings

# Machines are noisy and the first call of a kernel compiles it: nothing here is ever timed.
settings.register_profile("zoomrank", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("zoomrank")
