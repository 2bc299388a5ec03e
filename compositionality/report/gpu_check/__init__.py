"""``bash/gpu_check.sh``: does training work on this machine, how fast, in how much memory?"""
