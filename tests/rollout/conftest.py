import pytest
from random_models import make_tiny_model


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """A random Llama of 0.1 M parameters with a byte-level tokenizer, as a Hugging Face folder."""
    return make_tiny_model(tmp_path_factory.mktemp("model"))
