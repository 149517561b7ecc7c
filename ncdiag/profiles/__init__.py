"""The catalogue of NCCL's environment variables, profiles of their values, lint and export."""
