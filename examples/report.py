"""Write the report of a study: one self-contained HTML page, its figures as PNG, its tables as CSV."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("report")
