"""The error in a YAML file that a user wrote, with its place and its kind."""

from enum import StrEnum, auto

from bench.errors import UserError


class ErrorKind(StrEnum):
    """What is wrong with a value or a file, whatever words say it."""

    UNREADABLE = auto()
    """The file cannot be opened or is not UTF-8."""
    TOO_LARGE = auto()
    """A limit is exceeded: bytes, levels, values or combinations."""
    EMPTY = auto()
    """The file or the collection holds nothing."""
    SYNTAX = auto()
    """The text is not YAML."""
    SECOND_DOCUMENT = auto()
    TAG = auto()
    MERGE_KEY = auto()
    ALIAS = auto()
    """An alias has no anchor, or is inside its own."""
    NUMBER = auto()
    """A number that YAML 1.1 reads in another way than most people, or one with too many digits."""
    CHARACTER = auto()
    """Half of a surrogate pair."""
    COMPLEX_KEY = auto()
    """A key is a list or a mapping."""
    DUPLICATE = auto()
    """A key, a value or a cell is there already."""
    UNKNOWN_KEY = auto()
    """The key has another name in this version."""
    MISPLACED_KEY = auto()
    """The key exists, but not in this place."""
    MISSING_KEY = auto()
    WRONG_TYPE = auto()
    NOT_A_CHOICE = auto()
    """The value is none of those that the key takes."""
    OUT_OF_RANGE = auto()
    WRONG_FORMAT = auto()
    """A text that cannot be what it should name."""
    WRONG_LENGTH = auto()
    """A list has too many or too few values."""
    CONFLICT = auto()
    """The value is valid by itself, but not with other values."""
    NOT_FOUND = auto()
    """What the value names does not exist."""


class YamlError(UserError):
    """An error in a YAML file, shown as `FILE:LINE: KEY: message`; without the line where the file cannot be read."""

    def __init__(self, message: str, *, kind: ErrorKind, file: str, line: int | None = None, key: str = "") -> None:
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {key}: {message}" if key else f"{place}: {message}")
        self.message = message
        self.kind = kind
        self.file = file
        self.line = line
        self.key = key
