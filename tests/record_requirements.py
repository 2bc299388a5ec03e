"""Prints what the packages of a report of ``pip install --report`` require, a line each: {"name==version": [...]}."""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    found = [entry["metadata"] for entry in json.loads(Path(sys.argv[1]).read_text())["install"]]
    required = {f"{one['name']}=={one['version']}": one.get("requires_dist", []) for one in found}
    lines = (f" {json.dumps(pin)}: {json.dumps(required[pin])}" for pin in sorted(required, key=str.lower))
    print("{\n" + ",\n".join(lines) + "\n}")
