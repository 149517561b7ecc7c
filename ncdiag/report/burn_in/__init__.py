"""The gate before a launch, for people, for programs and for monitoring."""
