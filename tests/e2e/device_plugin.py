"""A device plugin of the kubelet on this machine that offers the stand-in for a T4: kubelet's gRPC API v1beta1.

Its messages, in https://github.com/kubernetes/kubelet/blob/master/pkg/apis/deviceplugin/v1beta1/api.proto, hold nothing
but texts, flags and each other, so they are written here by hand: https://protobuf.dev/programming-guides/encoding/
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import grpc

from stand_in_driver import CARD_UUID

FOLDER = Path("/var/lib/kubelet/device-plugins")
"""Where kubelet looks for its plugins, whatever its --root-dir is (DevicePluginPath in its constants.go)."""
KUBELET_SOCKET = FOLDER / "kubelet.sock"
OWN_SOCKET = FOLDER / "benchmatrix-stand-in.sock"
RESOURCE = "nvidia.com/gpu"
API_VERSION = "v1beta1"
REGISTRATION_SECONDS = 60.0
"""Only a test that fails waits for so long."""
VARIABLE_LENGTH = 2
"""protobuf's wire type of texts and messages."""


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """What a container gets with the card: variables, and files of this machine by their paths in the container."""

    variables: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, Path] = field(default_factory=dict)
    refusal: str = ""
    """Why the plugin refuses every container; empty: it does not."""


class DevicePlugin:
    """Offers one card to the kubelet, from `start` to `stop`; containers get what `allocation` says at that moment."""

    def __init__(self, num_shares: int = 1) -> None:
        """Offer so many shares of the card, named as NVIDIA's plugin does.

        NewAnnotatedID in internal/rm/devices.go of https://github.com/NVIDIA/k8s-device-plugin
        """
        self.allocation = Allocation()
        self.shares = [CARD_UUID] if num_shares == 1 else [f"{CARD_UUID}::{number}" for number in range(num_shares)]
        self.given: list[tuple[str, ...]] = []
        """What each container got, in the order in which they asked."""
        self._is_over = Event()
        self._server = grpc.server(ThreadPoolExecutor(max_workers=4))
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(lambda request, context: b""),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self._list_and_watch),
            "Allocate": grpc.unary_unary_rpc_method_handler(self._allocate),
        }
        service = grpc.method_handlers_generic_handler(f"{API_VERSION}.DevicePlugin", handlers)
        self._server.add_generic_rpc_handlers((service,))
        self._server.add_insecure_port(f"unix://{OWN_SOCKET}")

    def start(self) -> None:
        """Serve, and register with the kubelet."""
        self._server.start()
        request = _write_fields((1, API_VERSION), (2, OWN_SOCKET.name), (3, RESOURCE))
        with grpc.insecure_channel(f"unix://{KUBELET_SOCKET}") as channel:
            path = f"/{API_VERSION}.Registration/Register"
            register = channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)
            register(request, timeout=REGISTRATION_SECONDS, wait_for_ready=True)

    def stop(self) -> None:
        """Withdraw the card."""
        self._is_over.set()
        self._server.stop(grace=None).wait()

    def _list_and_watch(self, request: bytes, context: Any) -> Iterator[bytes]:
        yield _write_fields(*((1, _write_fields((1, share), (2, "Healthy"))) for share in self.shares))
        self._is_over.wait()

    def _allocate(self, request: bytes, context: Any) -> bytes:
        """Answer a request, which is for one container: devicemanager/manager.go in kubelet asks for each by itself."""
        allocation = self.allocation
        (container,) = _read_fields(request, 1)
        self.given.append(tuple(name.decode() for name in _read_fields(container, 1)))
        if allocation.refusal:
            context.abort(grpc.StatusCode.UNKNOWN, allocation.refusal)
        variables = [(1, _write_fields((1, name), (2, value))) for name, value in allocation.variables.items()]
        mounts = [(2, _write_mount(inside, outside)) for inside, outside in allocation.mounts.items()]
        return _write_fields((1, _write_fields(*variables, *mounts)))


def _write_mount(inside: str, outside: Path) -> bytes:
    return _write_fields((1, inside), (2, str(outside))) + bytes([3 << 3, 1])  # field 3, read_only: true


def _write_fields(*fields: tuple[int, str | bytes]) -> bytes:
    written = b""
    for number, value in fields:
        data = value.encode() if isinstance(value, str) else value
        written += bytes([number << 3 | VARIABLE_LENGTH]) + _write_number(len(data)) + data
    return written


def _read_fields(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the texts and messages in a field of a message that has no fields of another kind."""
    place = 0
    while place < len(message):
        field, kind = message[place] >> 3, message[place] & 7
        assert kind == VARIABLE_LENGTH
        length, place = _read_number(message, place + 1)
        if field == wanted:
            yield message[place : place + length]
        place += length


def _read_number(message: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        digit, place = message[place], place + 1
        number |= (digit & 0x7F) << shift
        shift += 7
        if not digit & 0x80:
            return number, place


def _write_number(number: int) -> bytes:
    """Return a number as a varint: seven bits a byte, the lowest first, with a mark on all but the last."""
    digits: Sequence[int] = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([digit | 0x80 for digit in digits[:-1]] + [digits[-1]])
