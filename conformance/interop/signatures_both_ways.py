#!/usr/bin/env python3
"""Holds `zt` against model_signing: signatures both ways. Run by `cargo xtask interop`.

usage: signatures_both_ways.py PATH/TO/zt

Folders and files that `zt` signs, model_signing has to verify, and the other way round; both have to refuse what was changed. The
statement that `zt` signs has to be model_signing's, except for the key `zt` of the predicate.
"""

import base64
import json
import pathlib
import subprocess
import sys
import tempfile

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from model_signing import signing, verifying

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


def exits(program, *args):
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, check=False)
    return done.returncode


def verifies(model, signature, key):
    """Whether model_signing accepts it."""
    try:
        verifying.Config().use_elliptic_key_verifier(public_key=key).verify(model, signature)
    except ValueError:
        return False
    return True


def statement(path):
    return json.loads(base64.b64decode(json.loads(path.read_text())["dsseEnvelope"]["payload"]))


def keys(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    public = folder / "key.pub"
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    found = []
    for form in ("PKCS8", "TraditionalOpenSSL", "OpenSSH"):
        path = folder / form
        path.write_bytes(key.private_bytes(pem, getattr(serialization.PrivateFormat, form), plain))
        found.append(path)
    return found, public


def check(program, folder, model, changed):
    secrets, public = keys(folder)
    _, other = keys(folder.joinpath("other"))
    theirs = folder / "theirs.sig"
    signing.Config().use_elliptic_key_signer(private_key=secrets[0]).sign(model, theirs)
    ours = []
    for secret in secrets:
        ours.append(folder / f"{secret.name}.sig")
        assert exits(program, "sign", model, ours[-1], "--key", secret, "--force") == 0
    assert len({path.read_bytes() for path in ours}) == 1, "one key, one signature"
    ours = ours[0]
    mine, his = statement(ours), statement(theirs)
    assert mine["predicate"].pop("zt")["format"] == "zt.signature/1"
    for one in (mine, his):
        one["predicate"]["serialization"]["ignore_paths"].sort()
    assert mine == his, (mine, his)
    for signature in (ours, theirs):
        for key, is_right in ((public, True), (other, False)):
            assert verifies(model, signature, key) == is_right, (model, signature, key)
            code = exits(program, "verify", model, "--signature", signature, "--key", key)
            assert code == (0 if is_right else 1), (model, signature, key, code)
    before = changed.read_bytes()
    changed.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    for signature in (ours, theirs):
        assert not verifies(model, signature, public)
        assert exits(program, "verify", model, "--signature", signature, "--key", public) == 1
    changed.write_bytes(before)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "other").mkdir()
        model = scratch / "model"
        (model / "a").mkdir(parents=True)
        weights = model / "model.safetensors"
        weights.write_bytes((DATA / "two-moons.safetensors").read_bytes())
        # Names are sorted in another order than paths.
        for name in ("a/b", "a-b", "a.b", "config.json"):
            (model / name).write_text(name)
        check(program, scratch, model, weights)
        check(program, scratch, weights, weights)
    print("model_signing: folders and files, signed and verified both ways")


if __name__ == "__main__":
    main()
