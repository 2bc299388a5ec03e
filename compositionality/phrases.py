"""What the comment behind a field of a settings dataclass says: its phrase in ``--help``."""

import ast
import inspect
import io
import textwrap
import tokenize
from dataclasses import fields, is_dataclass
from typing import Any


def phrases(schema: type[Any]) -> dict[str, str]:
    """Return the phrase of every field of a dataclass: metadata ``help``, else the comment at the end of its line."""
    texts: dict[str, str] = {}
    for base in reversed(schema.__mro__):
        if not is_dataclass(base):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except OSError:  # made by make_dataclass
            continue
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
        for node in ast.iter_child_nodes(ast.parse(source).body[0]):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                texts[node.target.id] = comments.get(node.end_lineno or 0, "")
    return texts | {entry.name: entry.metadata["help"] for entry in fields(schema) if "help" in entry.metadata}
