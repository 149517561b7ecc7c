"""The output of nccl-tests and rccl-tests: result tables and JSON reports."""
