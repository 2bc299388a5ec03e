"""Make a small sample of every domain (math, code, logic, simulation, STEM, tables) in guru's columns."""

from compositionality.__main__ import main

if __name__ == "__main__":
    main("make_domain_sample")
