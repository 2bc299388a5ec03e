"""The Countdown task: reach a target from given numbers, in the paper's mode and in a clean one."""
