"""`zt.open(seal=)`: what is read is compared with a seal."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import zt

MODEL = Path(__file__).parents[2] / "conformance/data/two-moons.safetensors"


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    shutil.copy(MODEL, tmp_path / "model.safetensors")
    command = [sys.executable, "-m", "zt", "seal", "model.safetensors", "model.seal"]
    subprocess.run(command, check=True, cwd=tmp_path)
    return tmp_path


def test_a_sound_file_reads_as_without_a_seal(sealed: Path) -> None:
    plain = zt.open(MODEL)
    for seal in (sealed / "model.seal", (sealed / "model.seal").read_bytes()):
        file = zt.open(sealed / "model.safetensors", seal=seal)
        assert list(file) == list(plain)
        for name in file:
            assert numpy.array_equal(file[name].numpy(), plain[name].numpy())


def test_a_wrong_byte_is_an_error_that_names_leaf_and_tensor(sealed: Path) -> None:
    path = sealed / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    zt.open(path)
    with pytest.raises(zt.DigestMismatchError, match="leaf 0 of model.safetensors") as raised:
        zt.open(path, seal=sealed / "model.seal")
    assert raised.value.code == "seal-mismatch"


def test_what_a_seal_cannot_be_for(sealed: Path) -> None:
    with pytest.raises(zt.MisuseError, match="path or a URL"):
        zt.open(MODEL.read_bytes(), seal=sealed / "model.seal")
    with pytest.raises(zt.MalformedError, match="not a seal"):
        zt.open(MODEL, seal=MODEL)


KEYS = Path(__file__).parents[2] / "conformance/data/signature"


def test_a_seal_that_was_not_signed_is_refused(sealed: Path) -> None:
    sign = [sys.executable, "-m", "zt", "sign", "model.seal", "model.sig", "--key", str(KEYS / "p256.pem")]
    subprocess.run(sign, check=True, cwd=sealed)
    path, seal, signature = (sealed / f"model.{kind}" for kind in ("safetensors", "seal", "sig"))
    for signed in (signature, signature.read_bytes()):
        file = zt.open(path, seal=seal, signature=signed, key=KEYS / "p256.pub")
        assert list(file) == list(zt.open(MODEL))
    (sealed / "more.txt").write_text("more")
    subprocess.run([sys.executable, "-m", "zt", "seal", ".", "other.seal"], check=True, cwd=sealed)
    for seal_, key, code in (
        (sealed / "other.seal", "p256.pub", "signature-mismatch"),
        (seal, "ed25519.pub", "signature-key"),
    ):
        with pytest.raises(zt.DigestMismatchError) as raised:
            zt.open(path, seal=seal_, signature=signature, key=KEYS / key)
        assert raised.value.code == code
    with pytest.raises(zt.MisuseError, match="all three"):
        zt.open(path, signature=signature, key=KEYS / "p256.pub")
