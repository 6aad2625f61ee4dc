"""Many volumes or cases at once: tasks, the engines that run them, a journal of what is done.

For: commands on datasets and sweeps with `--engine`, and studies of fleets. Must never know: how a
trace is simulated.
"""
