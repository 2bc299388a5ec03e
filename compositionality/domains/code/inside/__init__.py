"""The programs inside the sandbox, with the standard library alone: supervisor, solution and tests, each a process."""
