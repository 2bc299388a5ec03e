"""Questions of science: multiple choice, and free answers that a model compares with the reference."""
