"""What must not be published: secrets, and paths of the machine, in whatever files of a result can be read as text."""

import base64
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq

from compositionality.errors import SECRET_VARIABLES, SHORTEST_SECRET, UserError

SECRET = re.compile(
    r"(?<![A-Za-z0-9])(hf_[A-Za-z0-9]{30,}|sk-[\w-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{20,}"
    r"|A[KS]IA[A-Z0-9]{16}|wandb_v\d_\w{20,})|BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?i:wandb_?(api)?_?key|aws_secret_access_key)\W{1,4}[A-Za-z0-9/+=]{40}"
)
HOMES = r"/(?:home|root|Users|mnt|media|scratch|workspace|nfs|lustre|gpfs|fsx)/[\w.-]+"
PACKED = re.compile(r"H4sI[A-Za-z0-9+/]+=*")
"""Gzip in base64, as a page has it."""


def check_public(folder: Path, inputs: Sequence[Path]) -> None:
    """Raise UserError for a file in ``folder`` that holds a secret, or a path of this machine or of a home.

    Paths of this machine: below the home, the working folder, and where ``inputs`` lie. A message shows no secret.
    """
    own = [value for name, value in os.environ.items() if name.upper().endswith(SECRET_VARIABLES)]
    secrets = [value for value in own if len(value) >= SHORTEST_SECRET]
    here = {Path(*place.resolve().parts[:3]) for place in (Path.home(), Path.cwd(), *inputs)} - {Path("/")}
    places = re.compile(rf"(?<![\w.])({'|'.join([HOMES, *(re.escape(str(path)) for path in sorted(here))])})(?![\w.-])")
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        for text in texts(file):
            name = file.relative_to(folder)
            if SECRET.search(text) or any(secret in text for secret in secrets):
                raise UserError(f"{name}: holds what looks like a key or a password; take it out where it comes from")
            if place := places.search(text):
                raise UserError(f"{name}: holds the path {place[1]} of a machine; make it again without")


def texts(file: Path) -> Iterator[str]:
    """Yield what can be read in a file: rows of a table, the header of weights, other files and what they pack."""
    if file.suffix == ".parquet":
        table = pq.ParquetFile(file)
        yield str(table.schema_arrow.metadata)
        for batch in table.iter_batches():
            yield json.dumps(batch.to_pylist(), ensure_ascii=False, default=str)
    elif file.suffix == ".safetensors":
        with file.open("rb") as stream:
            yield stream.read(int.from_bytes(stream.read(8), "little")).decode(errors="replace")
    else:
        text = file.read_text(encoding="utf-8", errors="replace")
        yield text
        for packed in PACKED.findall(text):
            with suppress(OSError, EOFError, ValueError, zlib.error):
                yield gzip.decompress(base64.b64decode(packed)).decode(errors="replace")
