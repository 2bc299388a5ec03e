"""The report of a study: one HTML page that needs nothing else, its figures as PNG, its tables as CSV."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("report")
