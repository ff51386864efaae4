"""Throw-away keys: a certificate authority, a server's certificate, a pair that signs tokens."""

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)


class Authority:
    """Signs certificates for one day."""

    def __init__(self, name: str) -> None:
        """Make its key and its own certificate."""
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        basic = x509.BasicConstraints(ca=True, path_length=0)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        made = _builder(self._name, self._name, self._key).add_extension(basic, critical=True)
        made = made.add_extension(usage, critical=True).add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        self.pem = made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        """The certificate, for clients that trust it."""

    def issue(self, common: str, *names: str, lasts: dt.timedelta = _DAY) -> tuple[bytes, bytes]:
        """Return a new certificate and its key: for these DNS names, or else for loopback."""
        key = ec.generate_private_key(ec.SECP256R1())
        loopback = [ipaddress.ip_address(one) for one in ("127.0.0.1", "::1")]
        local = [x509.DNSName("localhost"), *map(x509.IPAddress, loopback)]
        made = _builder(_name(common), self._name, key, lasts).add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name) for name in names] or local),
            critical=False,
        )
        # From Python 3.13 on a certificate without it is refused.
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = made.add_extension(signer, critical=False)
        cert = made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        return cert, _private(key)


def write_certificates(folder: Path) -> None:
    """Write `ca.crt`, `server.crt`, `server.key` for loopback, and `sa.key`, `sa.pub`."""
    authority = Authority("lab-ca")
    _write(folder / "ca.crt", authority.pem)
    cert, key = authority.issue("lab-server")
    _write(folder / "server.crt", cert)
    _write(folder / "server.key", key)

    signing = ec.generate_private_key(ec.SECP256R1())
    public = signing.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    _write(folder / "sa.key", _private(signing))
    _write(folder / "sa.pub", public)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    lasts: dt.timedelta = _DAY,
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + lasts)
    )


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)
