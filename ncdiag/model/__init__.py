"""The words of ncdiag: hosts, devices, measurements, expectations, verdicts, units and errors."""
