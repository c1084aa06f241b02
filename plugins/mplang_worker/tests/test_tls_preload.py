"""What forks share of TLS is not randomness."""

import subprocess
import sys

FORKS = """
import os, ssl
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mplang_worker.engine.tls_preload import preload_tls

def told():
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.DER, form).hex() + " " + ssl.RAND_bytes(16).hex()

preload_tls()
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        print(told(), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
print(told())
"""


def test_forks_have_keys_and_random_numbers_of_their_own():
    printed = subprocess.run(
        [sys.executable, "-c", FORKS], check=True, capture_output=True, text=True
    ).stdout
    words = printed.split()
    assert len(set(words)) == len(words) == 8
