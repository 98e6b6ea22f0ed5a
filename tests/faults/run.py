#!/usr/bin/env python3
"""Puts faults into the sources one at a time, and sees which test finds each.

    tests/faults/run.py --build build/release [--only REGEX] [--wrap COMMAND] [--results FILE]
    tests/faults/run.py --build build/release --sound     # the tests alone, which must pass without a fault
    tests/faults/run.py --table                           # docs/faults.md's table from the results

faults.json lists them: a file, a piece of text that stands in it once, what takes its place, what that
means, and the tests that should fail: an executable and a filter of its tests. Each fault is written into the
source, the executable built and run, and the source put back, also when the run is interrupted. A fault is
found when the tests fail, or crash, or run into --seconds; results are kept by file and text, so that a second
run goes on where the first ended.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def key_of(fault):
    return fault["file"] + ": " + fault["from"]


def executable(build, name):
    found = [path for path in build.rglob(name) if path.is_file() and os.access(path, os.X_OK)]
    if len(found) != 1:
        raise SystemExit(f"{build} has {len(found)} executables {name}")
    return found[0]


def run_test(arguments, test):
    name, test_filter = test.split(" ", 1)
    command = shlex.split(arguments.wrap) + [
        str(executable(arguments.build, name)),
        f"--gtest_filter={test_filter}",
        "--gtest_brief=1",
    ]
    environment = {**os.environ, "JIGSAW_SOURCE_DIR": str(ROOT), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=arguments.seconds,
        )
    except subprocess.TimeoutExpired:
        return "did not end", []
    failed = sorted(set(re.findall(r"^\[  FAILED  \] ([\w/.]+)", done.stdout, re.MULTILINE)))
    if "no test" in done.stdout.lower() or re.search(r"Running 0 tests", done.stdout):
        raise SystemExit(f"{test} runs no test")
    if done.returncode == 0:
        return "passed", []
    return ("failed" if failed else f"ended with {done.returncode}"), failed


def build_target(arguments, test):
    return subprocess.run(
        ["ninja", "-C", str(arguments.build), f"-j{arguments.jobs}", test.split(" ")[0]],
        capture_output=True,
        text=True,
        check=False,
    )


def try_fault(arguments, fault):
    path = ROOT / fault["file"]
    sound = path.read_text()
    if sound.count(fault["from"]) != 1:
        return {"outcome": "does not fit the source", "failed": []}
    try:
        path.write_text(sound.replace(fault["from"], fault["to"]))
        built = build_target(arguments, fault["test"])
        if built.returncode != 0:
            error = re.search(r"error: .*", built.stdout)
            return {"outcome": "not built: " + (error.group(0) if error else "?"), "failed": []}
        outcome, failed = run_test(arguments, fault["test"])
        return {"outcome": outcome, "failed": failed}
    finally:
        path.write_text(sound)


def table(faults, results):
    print("| fault | file | found by |\n| --- | --- | --- |")
    for fault in faults:
        found = results.get(key_of(fault))
        if found is None:
            by = "not run"
        elif found["failed"]:
            by = ", ".join(f"`{name}`" for name in found["failed"][:2])
            by += ", …" if len(found["failed"]) > 2 else ""
        elif found["outcome"] == "passed":
            by = f"nothing (of `{fault['test']}`)"
        else:
            by = f"`{fault['test']}`, which {found['outcome']}"
        print(f"| {fault['what']} | `{fault['file']}` | {by} |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=pathlib.Path, help="a configured build folder")
    parser.add_argument("--only", default="", help="a regular expression for file or meaning")
    parser.add_argument("--wrap", default="", help="what stands before a test's command, such as nice")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300, help="longest time of a test")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results.json")
    parser.add_argument("--again", action="store_true", help="also those with a result")
    parser.add_argument("--sound", action="store_true", help="run the tests without a fault")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    faults = json.loads((HERE / "faults.json").read_text())
    results = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}
    if arguments.table:
        return table(faults, results)
    if arguments.build is None:
        parser.error("--build is needed")
    chosen = [f for f in faults if re.search(arguments.only, f["file"] + " " + f["what"])]
    if arguments.sound:
        for test in sorted({fault["test"] for fault in chosen}):
            if build_target(arguments, test).returncode != 0:
                raise SystemExit(f"{test.split(' ')[0]} does not build")
            print(test, run_test(arguments, test), flush=True)
        return None
    for fault in chosen:
        if key_of(fault) in results and not arguments.again:
            continue
        began = time.time()
        results[key_of(fault)] = try_fault(arguments, fault)
        arguments.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        found = results[key_of(fault)]
        print(
            f"{time.time() - began:5.0f} s  {found['outcome']:12}  {fault['what']}  {' '.join(found['failed'][:3])}",
            flush=True,
        )
    return None


if __name__ == "__main__":
    main()
