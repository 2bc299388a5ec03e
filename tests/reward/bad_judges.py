"""Judges that go wrong in every way, by what the response says."""

import os
import sys
import time

from compositionality.types import Reason, Verdict


def judge(response: str, ground_truth: str) -> Verdict:
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
        return Verdict(float(len(eaten) > 0), Reason.CORRECT)
    if response == "modules":
        return Verdict(0.0, Reason.WRONG, ",".join(sorted(sys.modules)))
    correct = response == ground_truth
    return Verdict(float(correct), Reason.CORRECT if correct else Reason.WRONG, response)
