"""Make one file of problems of any task, or all files of a problem set. The task's options are keys of this command."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("create_problems")
