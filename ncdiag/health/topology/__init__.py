"""What a host knows of its own topology: dumps of the tools there are, and its PCIe links."""
