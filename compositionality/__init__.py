"""A laboratory for one question: does RL teach language models new skills, or only re-rank old ones?"""

__version__ = "0.2.0"
