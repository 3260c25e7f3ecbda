"""Checks the file of certificates that the environment names, before OpenSSL or the store library opens it.

Both read whatever is there to its end, in code that no signal interrupts: of a pipe, or of /dev/zero, there is none.
"""

from collections.abc import Mapping
from pathlib import Path

from bench.foreign_files import FileProblem, ForeignFileError, read_foreign_file

VARIABLE = "SSL_CERT_FILE"
MAX_CERTIFICATE_BYTES = 64 * 2**20
"""All authorities that Mozilla trusts have 0.2 MB."""


def check_certificates(variables: Mapping[str, str]) -> None:
    """Raise ValueError, which names the variable, where what it names is no regular file.

    One that is not there is left to the libraries, which then trust nobody.
    """
    path = variables.get(VARIABLE)
    if not path:
        return
    try:
        read_foreign_file(Path(path), max_bytes=MAX_CERTIFICATE_BYTES)
    except ForeignFileError as error:
        if error.problem != FileProblem.MISSING:
            raise ValueError(f"{VARIABLE}: {path}: {error}; expected a file of certificates in PEM") from None
