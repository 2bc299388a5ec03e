"""A language model small enough to pretrain on two CPU cores in minutes: the tiny stand-in for an 8B model."""
