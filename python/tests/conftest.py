"""Where the tests find the sources, the golden files and the program."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / "build/release/apps/jigsaw-train/jigsaw-train"


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def goldens():
    return ROOT / "tests/goldens"


@pytest.fixture(scope="session")
def jigsaw_train():
    """Runs jigsaw-train: $JIGSAW_TRAIN, that of the path, or that of build/release."""
    found = os.environ.get("JIGSAW_TRAIN") or shutil.which("jigsaw-train") or (BUILT if BUILT.exists() else None)
    if not found:
        pytest.skip("there is no jigsaw-train: set JIGSAW_TRAIN, or build it in build/release")

    def run(*arguments, cwd):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(cwd)}
        done = subprocess.run(
            [str(found), *map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
