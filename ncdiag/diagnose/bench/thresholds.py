"""Every bound that a benchmark is judged by, with its reason."""

# Sizes are on a level where they reach this share of one another. On a curve of latency plus bytes
# over bandwidth, the middle one of three sizes that double then reaches 0.89 of what all of it is.
LEVEL_SHARE = 0.9
# Fewer sizes on the level are no level: the curve may still rise.
LEAST_LEVEL_SIZES = 3
# The level is measured from the median of so many of the best sizes, so that one figure too good
# to be true does not lift it.
BEST_SIZES = 3

# Below this share of both neighbours a size is a cliff. Where NCCL changes algorithm or protocol,
# published curves dip by up to a fifth of what the size before reached.
CLIFF_SHARE = 0.7
# As many sizes on either side are looked at, so that two slow sizes side by side are found.
CLIFF_NEIGHBOURS = 2
# It takes so many measurements that agree: out of place and in place count as one each.
CLIFF_LOOKS = 2
# Below this share of the best size latency decides, and a slow size costs no bandwidth.
BANDWIDTH_SHARE = 0.1

# Spread over the repeats, of their median. Runs on quiet fabrics repeat within 2 to 3 %.
NOISE_SHARE = 0.15

# How much slower than the others one process must be, in the median iteration. The processes of a
# collective wait for each other, so that even a very slow one stands out by little.
SLOW_RANK_RATIO = 1.1
# In so many stretches of iterations it must be half as slow at least as it is on the whole.
SLOW_RANK_WINDOWS = 0.75
# Fewer iterations prove nothing.
LEAST_ITERATIONS = 5
# When more of the processes than this are slow it is no process that is.
MOST_SLOW_RANKS = 0.25

# More hosts reach at least this share of what fewer did, each against its own expectation: rings
# cost latency with every host, which the plateau hardly shows.
SCALING_SHARE = 0.85
# Published runs fall short of their expectation by so much: above it a break is no fault, however
# much fewer hosts exceeded theirs.
WITHIN_THEORY = 0.85
# The same without expectations, where what fewer hosts reached is all there is to compare with.
SCALING_SHARE_ALONE = 0.75

# Published runs exceed their expectation by 7 % at most: beyond this it is that of another machine.
EXCEEDS_SHARE = 1.15

# Fewer earlier benchmarks are no history.
LEAST_HISTORY = 3
