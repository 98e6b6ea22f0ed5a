#!/usr/bin/env python3
"""Puts faults into the sources one at a time, and sees which test finds each.

    tests/faults/run.py --build build/release [--only REGEX] [--wrap COMMAND] [--results FILE]
    tests/faults/run.py --build build/release --sound     # the tests alone, which must pass without a fault
    tests/faults/run.py --table                           # docs/faults.md's table from the results

faults.json lists them: a file, a piece of text that stands in it once, what takes its place, what that
means, and the tests that should fail: an executable and a filter of its tests. Of each fault a copy of the
source with it is compiled as the build compiles the source, and linked in front of the libraries into another
executable of the test: the sources and the build stay as they are. A fault is found when the tests fail, or
crash, or run into --seconds; results are kept by file and text, so that a second run goes on where the first
ended.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
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


def run_test(arguments, test, program=None):
    name, test_filter = test.split(" ", 1)
    command = shlex.split(arguments.wrap) + [
        str(program or executable(arguments.build, name)),
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
    if re.search(r"\b0 tests from 0 test suites", done.stdout):
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


def compile_fault(arguments, fault, commands, folder):
    """The object of the source with the fault; or why there is none."""
    source = ROOT / fault["file"]
    sound = source.read_text()
    if sound.count(fault["from"]) != 1:
        return None, "does not fit the source"
    changed = folder / source.name
    changed.write_text(sound.replace(fault["from"], fault["to"]))
    if str(source) not in commands:
        raise SystemExit(f"{arguments.build} compiles {fault['file']} together with others: configure it with -DJIGSAW_UNITY=OFF")
    command = commands[str(source)]
    words = shlex.split(arguments.launch) + shlex.split(command["command"])
    words[words.index("-o") + 1] = str(folder / "fault.o")
    words[words.index("-c") + 1] = str(changed)
    # For the compiler's time; and a fault may leave a name that nobody uses.
    built = subprocess.run(
        words + ["-O1", "-Wno-error"], cwd=command["directory"], capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        error = re.search(r"error: .*", built.stderr)
        return None, "not built: " + (error.group(0) if error else "?")
    return folder / "fault.o", ""


def link_fault(arguments, test, fault_object, folder):
    """The test's executable with an object that stands before the library that has the sound one."""
    name = test.split(" ")[0]
    target = executable(arguments.build, name).relative_to(arguments.build)
    listed = subprocess.run(
        ["ninja", "-C", str(arguments.build), "-t", "commands", str(target)],
        capture_output=True,
        text=True,
        check=True,
    )
    command = listed.stdout.splitlines()[-1]
    program = folder / name
    linked = command.replace(f" -o {target} ", f" {fault_object} -o {program} ")
    if linked == command:
        raise SystemExit(f"the command that links {name} is not understood: {command}")
    subprocess.run(linked, shell=True, cwd=arguments.build, capture_output=True, check=True)
    return program


def try_fault(arguments, fault, commands):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        fault_object, why = compile_fault(arguments, fault, commands, folder)
        if fault_object is None:
            return {"outcome": why, "failed": []}
        program = link_fault(arguments, fault["test"], fault_object, folder)
        outcome, failed = run_test(arguments, fault["test"], program)
        return {"outcome": outcome, "failed": failed}


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
    parser.add_argument("--launch", default="", help="what stands before a compiler's command")
    parser.add_argument("--jobs", type=int, default=2, help="faults at a time")
    parser.add_argument("--seconds", type=float, default=300, help="longest time of a test")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results.json")
    parser.add_argument("--again", action="store_true", help="also those with a result")
    parser.add_argument("--sound", action="store_true", help="run the tests without a fault")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    faults = json.loads((HERE / "faults.json").read_text())
    known = {key_of(fault) for fault in faults}
    results = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}
    results = {key: found for key, found in results.items() if key in known}
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
    arguments.build = arguments.build.resolve()
    listed = json.loads((arguments.build / "compile_commands.json").read_text())
    commands = {entry["file"]: entry for entry in listed}
    left = [fault for fault in chosen if arguments.again or key_of(fault) not in results]
    for test in sorted({fault["test"].split(" ")[0] for fault in left}):
        if build_target(arguments, test).returncode != 0:
            raise SystemExit(f"{test} does not build")
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        began = time.time()
        tried = {pool.submit(try_fault, arguments, fault, commands): fault for fault in left}
        for future in concurrent.futures.as_completed(tried):
            fault, found = tried[future], future.result()
            results[key_of(fault)] = found
            arguments.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
            print(
                f"{time.time() - began:5.0f} s  {found['outcome']:12}  {fault['what']}  {' '.join(found['failed'][:3])}",
                flush=True,
            )
    return None


if __name__ == "__main__":
    main()
