"""The engines that measure a pair of hosts."""
