"""A hub on one's own machine, for the dev environment, tests and benchmarks."""
