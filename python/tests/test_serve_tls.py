"""Clients that connect over TLS, with certificates made for the test.

For: `serve.tls` and `tenant.clients` with clients of other projects. Must never know: how TLS is
done. Needs `openssl` and clients of the protocol; skips where they are not installed.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from test_serve import MIB, STACK, Server, tool

from cachewright.live import serving

SERVE = """
[serve]
tls = "required"
tls_certificate = "server-cert.pem"
tls_key = "server-key.pem"
tls_authorities = "ca-cert.pem"
"""
EXTENSIONS = """
[server]
subjectAltName = DNS:localhost
[client]
extendedKeyUsage = clientAuth
"""


def openssl(folder: Path, *arguments: str) -> None:
    """Run `openssl` in a folder; skips the test where it is not installed."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    words = ["openssl", *arguments]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def signed(folder: Path, kind: str, name: str, into: Path) -> None:
    """Make a certificate of this common name in a folder of its own, as libnbd expects it."""
    into.mkdir(exist_ok=True)
    (folder / "extensions.cnf").write_text(EXTENSIONS)
    key, cert = str(into / f"{kind}-key.pem"), str(into / f"{kind}-cert.pem")
    new = ("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}")
    openssl(folder, *new, "-keyout", key, "-out", "request.pem")
    by = ("-CA", "ca-cert.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-days", "2")
    extensions = ("-extfile", "extensions.cnf", "-extensions", kind)
    openssl(folder, "x509", "-req", "-in", "request.pem", *by, *extensions, "-out", cert)
    if into != folder:
        shutil.copy(folder / "ca-cert.pem", into)


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """Give a stack with two exports, each for one client."""
    authority = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=authority")
    openssl(tmp_path, *authority, "-keyout", "ca-key.pem", "-out", "ca-cert.pem", "-days", "2")
    signed(tmp_path, "server", "localhost", tmp_path)
    for name in ("alice", "bob"):
        signed(tmp_path, "client", name, tmp_path / name)
    for name, mib in (("cache.img", 32), ("data.img", 8), ("more.img", 8)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(mib * MIB)
    path = tmp_path / "stack.toml"
    text = STACK.replace("[serve]\n", SERVE.lstrip())
    path.write_text(
        text
        + 'clients = ["alice"]\n\n[[tenant]]\nname = "more"\nbacking = "more.img"\n'
        + 'clients = ["bob"]\n'
    )
    serving.format_devices(path)
    return path


def test_clients_see_the_exports_that_their_certificates_name(stack: Path) -> None:
    folder = stack.parent
    data = bytes(range(256)) * (8 * MIB // 256)
    (folder / "in.img").write_bytes(data)
    socket = folder / "live.sock"

    def url(client: str, export: str) -> str:
        return f"nbds+unix:///{export}?socket={socket}&tls-certificates={folder / client}"

    server = Server(stack)
    try:
        tool("nbdcopy", "--flush", str(folder / "in.img"), url("alice", "data"))
        tool("nbdcopy", url("alice", "data"), str(folder / "out.img"))
        listed = tool("nbdinfo", "--list", url("bob", ""))
        clear = subprocess.run(
            ["nbdinfo", f"nbd+unix:///data?socket={socket}"],
            capture_output=True,
            text=True,
            check=False,
        )
        creds = f"tls-creds-x509,id=tls,endpoint=client,dir={folder / 'alice'}"
        image = f"driver=nbd,path={socket},export=data,tls-creds=tls,tls-hostname=localhost"
        if shutil.which("qemu-img") is not None:
            convert = ("qemu-img", "convert", "--object", creds, "--image-opts", image)
            tool(*convert, "-O", "raw", str(folder / "qemu.img"))
            assert (folder / "qemu.img").read_bytes() == data
    finally:
        server.stop(signal.SIGTERM)
    assert (folder / "out.img").read_bytes() == data
    assert 'export="more"' in listed
    assert 'export="data"' not in listed
    assert clear.returncode != 0
