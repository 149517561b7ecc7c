"""What each report says against hosts, and for them; one module a report, all pure.

``run`` names the run that a report is of, the same whenever it is recorded. What a report itself
does not accuse a host of is never conclusive.
"""
