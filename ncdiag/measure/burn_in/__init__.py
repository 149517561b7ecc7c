"""The gate before a launch: stages that one fleet goes through within a budget of time."""
