"""Makes an authority and certificates for servers, good ones and such as no client may accept."""

import ipaddress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

BEGIN, END, PAST = (datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2100, 2021))


@dataclass(frozen=True)
class Authority:
    """An authority of a test."""

    name: str = "test authority"
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def write_own(self, path: Path) -> Path:
        """Write its own certificate in PEM."""
        made = _begin(self.name, self.name, self.key, END)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        path.write_bytes(made.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM))
        return path

    def write_server(self, path: Path, *, address: str = "127.0.0.1", end: datetime = END) -> Path:
        """Write a certificate that it gives to the server at `address`, with its private key, in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        made = (
            _begin("test server", self.name, key, end)
            .add_extension(names, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(made.public_bytes(Encoding.PEM) + private)
        return path


def _begin(name: str, issuer: str, key: ec.EllipticCurvePrivateKey, end: datetime) -> x509.CertificateBuilder:
    given, own = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (issuer, name))
    return x509.CertificateBuilder(given, own, key.public_key(), x509.random_serial_number(), BEGIN, end)
