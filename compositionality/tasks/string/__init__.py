"""The string task: nested functions on short strings, in the paper's mode and in a clean one."""
