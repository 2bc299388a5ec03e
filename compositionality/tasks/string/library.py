"""The 25 atomic functions, written out; their source is the definition that Stage 1 shows.

Parameters are always positional after the text. Names are replaced by ``func_N`` before anybody sees them.
"""


def deterministic_shuffle(text: str) -> str:
    """Visit the characters in strides: the smallest odd stride from 3 on that shares no factor with the length."""
    from math import gcd

    length = len(text)
    stride = 3
    while length and gcd(stride, length) != 1:
        stride += 2
    return "".join([text[i * stride % length] for i in range(length)])


def repeat_str(text: str, times: int) -> str:
    """Write the text several times in a row."""
    return text * times


def remove_vowels(text: str) -> str:
    """Leave out a, e, i, o and u, small or capital."""
    return "".join([char for char in text if char not in "aeiouAEIOU"])


def sort_chars(text: str) -> str:
    """Put the characters in ascending order."""
    return "".join(sorted(text))


def reverse_words(text: str) -> str:
    """Put the words in reverse order, with one space between them."""
    return " ".join(text.split()[::-1])


def add_prefix(text: str, prefix: str) -> str:
    """Put a prefix before the text."""
    return prefix + text


def add_suffix(text: str, suffix: str) -> str:
    """Put a suffix after the text."""
    return text + suffix


def interlace_str(text: str, other: str) -> str:
    """Take characters from both texts in turn; what is left of the longer one follows."""
    return "".join([text[i : i + 1] + other[i : i + 1] for i in range(max(len(text), len(other)))])


def rotate_str(text: str, count: int) -> str:
    """Move the first characters to the end."""
    if not text:
        return text
    start = count % len(text)
    return text[start:] + text[:start]


def mirror_str(text: str) -> str:
    """Follow the text by its reverse."""
    return text + text[::-1]


def alternate_case(text: str) -> str:
    """Write positions 0, 2, 4, ... in small letters and positions 1, 3, 5, ... in capitals."""
    return "".join([char.upper() if i % 2 else char.lower() for i, char in enumerate(text)])


def shift_chars(text: str, count: int) -> str:
    """Move every letter on in the alphabet, from z back to a; other characters stay."""
    small = "abcdefghijklmnopqrstuvwxyz"
    moved = small[count:] + small[:count]
    return text.translate(str.maketrans(small + small.upper(), moved + moved.upper()))


def vowel_to_number(text: str) -> str:
    """Replace a, e, i, o, u, small or capital, by 1, 2, 3, 4, 5."""
    return text.translate(str.maketrans("aeiouAEIOU", "1234512345"))


def insert_separator(text: str, separator: str) -> str:
    """Put a separator between neighbouring characters."""
    return separator.join(text)


def duplicate_every_char(text: str) -> str:
    """Write every character twice."""
    return "".join([char + char for char in text])


def fancy_brackets(text: str) -> str:
    """Wrap every character in angle quotes."""
    return "".join(["«" + char + "»" for char in text])


def compress_repeats(text: str) -> str:
    """Leave out a character that equals the one before it."""
    return "".join([char for i, char in enumerate(text) if i == 0 or char != text[i - 1]])


def recursive_reverse(text: str) -> str:
    """Write the text backwards."""
    return text[::-1]


def loop_concat(text: str, times: int) -> str:
    """Append the text to an empty result, several times."""
    result = ""
    for _ in range(times):
        result += text
    return result


def while_rotate(text: str, count: int) -> str:
    """Move the first character to the end, several times."""
    while count > 0 and text:
        text = text[1:] + text[0]
        count -= 1
    return text


def recursive_interlace(text: str, other: str) -> str:
    """Take one character of each text until one of them is used up; the rest of the other follows."""
    shared = min(len(text), len(other))
    woven = "".join([char for pair in zip(text[:shared], other[:shared], strict=True) for char in pair])
    return woven + text[shared:] + other[shared:]


def loop_filter_nonalpha(text: str) -> str:
    """Keep the letters only."""
    return "".join([char for char in text if char.isalpha()])


def verify_even_length(text: str) -> str:
    """Drop the last character if the length is odd."""
    return text[: len(text) - len(text) % 2]


def backchain_add_digit(text: str, depth: int) -> str:
    """Search, at most ``depth`` edits deep, for a text with a digit; the first edit tried appends a 1."""
    if depth < 1 or any(char.isdigit() for char in text):
        return text
    return text + "1"


def backchain_palindrome(text: str, depth: int) -> str:
    """Search, at most ``depth`` edits deep, for a palindrome; the edit appends the reverse."""
    if depth < 1 or text == text[::-1]:
        return text
    return text + text[::-1]
