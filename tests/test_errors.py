import pytest

from compositionality.errors import without_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:pa@ss@host:80/v1: busy", "http://***@host:80/v1: busy"),
        ("https://token@host/v1", "https://***@host/v1"),
        ("GET http://h/v1?api_key=abc&sig=x. refused", "GET http://h/v1?api_key=***&sig=*** refused"),
        ("http://u:p@ss/word@host/v1", "http://***@host/v1"),
        ("http:/user:pass@host/v1", "http:/***@host/v1"),
        ("user:pass@host:80/v1: no address", "***@host:80/v1: no address"),
        ("wrong key sk-123456 given", "wrong key *** given"),
        ("none of this: a@b.c, key=5, http://host:8000/v1 none", None),
        ("", None),
    ],
)
def test_secrets_of_urls_and_of_the_environment_are_left_out(text, shown, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-123456")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert without_secrets(text) == (text if shown is None else shown)
