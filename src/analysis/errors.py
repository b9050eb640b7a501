"""The one error that bad input raises, in every layer."""


class InputError(ValueError):
    """Something that the user gave is unusable; the message is one line.

    ``place`` says where (a file and line, a field, an option), ``found`` what was there and
    ``expected`` what would have been right.
    """

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(place, found, expected)
        self.place = place
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        text = f"{self.place}: found {self.found}; expected {self.expected}"
        return " ".join(text.split())
