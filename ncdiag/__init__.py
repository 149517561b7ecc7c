"""ncdiag: finds the bad link before a large training job does, and explains the failure after."""

__version__ = "0.1.0"
