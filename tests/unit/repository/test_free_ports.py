"""s3_server.find_free_port: a server that a test starts finds its port as free as it was when it was chosen."""

import socket

import pytest

from s3_server import find_free_port


def test_a_port_that_was_found_is_kept_for_the_server_that_will_listen_there() -> None:
    port = find_free_port()
    with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
        other.bind(("127.0.0.1", port))
    for _ in range(2):  # a server that is started again
        with socket.create_server(("127.0.0.1", port)) as server:  # it sets SO_REUSEADDR
            assert server.getsockname()[1] == port
