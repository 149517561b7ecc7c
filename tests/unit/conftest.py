import hypothesis

# A busy machine is no reason to fail.
hypothesis.settings.register_profile("no_deadline", deadline=None)
hypothesis.settings.load_profile("no_deadline")
