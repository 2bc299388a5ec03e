"""Write the record of a study, for a commit: a folder without host names or paths, whole or not at all."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("write_record")
