"""Every number that a post-mortem's judgement hangs on, with the reason for it."""

# Clocks of hosts without a common time source were seen seconds apart; what is closer than this on
# two hosts has no certain order.
CLOCK_SKEW_S = 5.0
# A fault that a kernel logs this long after a failure did not cause it: adapters give up on a lost
# peer within two minutes, and clocks differ by less than the rest.
CAUSE_AFTER_EFFECT_S = 300.0
# A fault a day before a failure belongs to another job: the longest time-outs are hours.
CAUSE_BEFORE_EFFECT_S = 86_400.0
# Followers of an Xid are logged within seconds of it on the same GPU; clean-up takes a minute.
CASCADE_S = 120.0

# Signs further apart than this are independent of one another: a burst of retries, of queue pairs
# that fail one by one, of ranks that notice one after another, is over within a minute.
AGAIN_AFTER_S = 60.0
# A link's flap is over when it is up again; drivers of one port report one change within seconds.
FLAP_AFTER_S = 10.0
# The kernel repeats that a task is blocked every two minutes as long as it is.
STALL_AFTER_S = 600.0
# So many different hosts must name a host before their word is taken for more than one bad link.
REPORTING_HOSTS = 2

# A silence is long when it exceeds this many of the longest pauses before it ...
SILENCE_TIMES_PACE = 10.0
# ... and this, since checkpoints and evaluations take minutes without a word.
SILENCE_S = 300.0
# Fewer timed lines than this make no pace.
PACE_LINES = 4
# Two clocks this many hours apart, in whole halves of an hour, may be of one moment in two zones;
# the reach of zones east of Greenwich, where a local time is later than a universal one.
ZONES_H = 11.0
# Calls of which it is not known how often they come, and a kill: time-outs of the libraries, after
# which a hang is given up, are half an hour or less.
SILENCE_OF_UNKNOWN_PACE_S = 1_800.0

# A job that fails this long after its host was booted was not started before.
BOOT_BEFORE_JOB_S = 3_600.0
# A kernel that boots brings its links up within this many seconds.
BOOT_S = 60.0

# Bandwidth falls off a cliff when the next larger size has this share or less: "half or more".
CLIFF_SHARE = 0.5
# It is back, and the row between was noise, when the size after reaches this much of the level.
CLIFF_BACK_SHARE = 0.8
# Below this, in GB/s, two printed decimals round too much for a ratio.
CLIFF_FLOOR_GB_PER_S = 0.1

# A pair of hosts is slow below this share of the median pair: paths of one fabric differ by less.
SLOW_PAIR_SHARE = 0.8

# One sign more takes away this share of the doubt that is left.
DOUBT_PER_SIGN = 0.6
# No finding is surer than this: logs are what programs say, not what hardware did.
MOST_CONFIDENT = 0.97
# A root that is only an echo, or only says that something failed.
ECHO_CONFIDENCE = 0.25
# An optional feature that failed, with no word of what followed: jobs mostly go on without it.
UNANSWERED_CONFIDENCE = 0.3
# What is left of a confidence when an input was not read to its end.
CUT_SHARE = 0.9
# Evidence lines shown with a finding.
MAX_EVIDENCE = 5
# Names spelled out in a sentence; the rest is a number.
MAX_NAMES = 4
