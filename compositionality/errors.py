"""Mistakes that a user can fix, each reported in one line."""


class UserError(Exception):
    """Bad input: the message names the file, the row and the fix. Entry points print it and exit with code 2."""

    exit_code = 2
