"""A reward function that goes wrong in every way, by what the response says."""

import os
import sys
import time


def judge(data_source: str, solution_str: str, ground_truth: str, extra_info: object) -> object:
    response = solution_str
    if response == "hang":
        time.sleep(1000)
    if response == "slow":
        time.sleep(0.5)
    if response == "spin":
        while True:
            pass
    if response == "crash":
        os.abort()
    if response == "exit":
        os._exit(0)
    if response == "raise":
        raise RuntimeError("I failed")
    if response == "eat":
        eaten = bytearray(700 << 20)  # more than the test's limit, less than any machine has
        return float(len(eaten) > 0)
    if response == "modules":
        return {"score": 0, "pred": ",".join(sorted(sys.modules))}
    if response == "hash":
        return {"score": 0, "pred": str(hash("a text"))}
    return {"score": response == ground_truth, "pred": response}
