#!/usr/bin/env python3
"""Puts faults into the sources one at a time, and sees which test finds each.

    tests/faults/run.py --build build/release [--only REGEX] [--wrap COMMAND] [--results FILE]
    tests/faults/run.py --build build/release --sound     # the tests alone, which must pass without a fault
    tests/faults/run.py --check                           # whether every fault fits its source
    tests/faults/run.py --table                           # docs/faults.md's table from the results

faults.json lists them: a file, a piece of text that stands in it once, what takes its place, what that
means, and the tests that should fail: as in a shell, what their environment has besides, an executable, and a
filter of its tests; RANKS=3 in that environment has MPI start three ranks of it. Of each fault a copy of the
source with it is compiled as the build compiles the source for that executable (those of CUDA's kernels are
compiled for the host, too), and linked in its place, or in front of the libraries, into another executable of
the test: the sources and the build stay as they are. A source that the build compiles together with others is
so here, too. A fault is found when the tests fail, or crash, or run into --seconds; results are kept by file
and text, so that a second run goes on where the first ended.
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
# As cmake/JigsawTest.cmake gives it to tests.
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def key_of(fault):
    return fault["file"] + ": " + fault["from"]


def misfits(faults, sources):
    """A line for each fault whose text does not stand in its file once."""
    for fault in faults:
        path = sources / fault["file"]
        count = path.read_text().count(fault["from"]) if path.is_file() else None
        if count != 1:
            where = "there is no such file" if count is None else f"its text stands there {count} times"
            yield f"{fault['file']}: {where}: \"{fault['what']}\": {fault['from']}"


def parts_of(test):
    """Environment, executable and filter of a test."""
    *environment, name, test_filter = test.split(" ")
    return dict(pair.split("=", 1) for pair in environment), name, test_filter


def executable(build, name):
    found = [path for path in build.rglob(name) if path.is_file() and os.access(path, os.X_OK)]
    if len(found) != 1:
        raise SystemExit(f"{build} has {len(found)} executables {name}")
    return found[0]


def mpirun(arguments, ranks):
    """What stands before the command of a test on several ranks; it ends them, too, when they do not end."""
    cache = (arguments.build / "CMakeCache.txt").read_text()
    program = re.search(r"^MPIEXEC_EXECUTABLE:FILEPATH=(.*)$", cache, re.MULTILINE).group(1)
    limit = str(int(arguments.seconds))
    return [program, "--oversubscribe", "--bind-to", "none", "--timeout", limit, "-n", ranks]


def run_test(arguments, test, program=None):
    more, name, test_filter = parts_of(test)
    ranks = more.pop("RANKS", None)
    command = (
        shlex.split(arguments.wrap)
        + (mpirun(arguments, ranks) if ranks else [])
        + [
            str(program or executable(arguments.build, name)),
            f"--gtest_filter={test_filter}",
            "--gtest_brief=1",
        ]
    )
    environment = {**os.environ, **MPI, "JIGSAW_SOURCE_DIR": str(ROOT), "OMP_NUM_THREADS": "1", **more}
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=arguments.seconds + (60 if ranks else 0),
        )
    except subprocess.TimeoutExpired:
        return "did not end", []
    failed = sorted(set(re.findall(r"^\[  FAILED  \] ([\w/.]+)", done.stdout, re.MULTILINE)))
    if re.search(r"\b0 tests from 0 test suites", done.stdout):
        raise SystemExit(f"{test} runs no test")
    if done.returncode == 0:
        return "passed", []
    return ("failed" if failed else f"ended with {done.returncode}"), failed


def build_target(arguments, name):
    if arguments.as_it_is:
        return
    command = ["ninja", "-C", str(arguments.build), f"-j{arguments.jobs}", name]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        raise SystemExit(f"{name} does not build")


class Build:
    """A build folder: its sources, how it compiles each, and how it links programs."""

    def __init__(self, folder):
        self.folder = folder
        cache = (folder / "CMakeCache.txt").read_text()
        self.sources = pathlib.Path(re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.MULTILINE).group(1))
        self.commands = {}  # by source: those that compile it, by itself or in a batch
        for entry in json.loads((folder / "compile_commands.json").read_text()):
            compiled = pathlib.Path(entry["file"])
            batch = compiled.read_text() if compiled.parent.name == "Unity" else ""
            for source in re.findall(r'^#include "(.*)"$', batch, re.MULTILINE) or [entry["file"]]:
                self.commands.setdefault(source, []).append(entry)

    def ask(self, *question):
        asked = ["ninja", "-C", str(self.folder), "-t", *question]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()

    def command_for(self, source, program):
        """The words of the one that makes what the program is linked of; and what it compiles."""
        objects = set(self.ask("inputs", program))
        for entry in self.commands.get(str(source), []):
            words = shlex.split(entry["command"])
            if words[words.index("-o") + 1] in objects:
                return words, pathlib.Path(entry["file"])
        raise SystemExit(f"{program} is not linked of {source}")

    def link_command(self, program):
        return self.ask("commands", program)[-1]


def compile_fault(arguments, build, fault, program, folder):
    """The object of the source with the fault, and the one it takes the place of; or why there is none."""
    source = build.sources / fault["file"]
    words, compiled = build.command_for(source, program)
    changed = folder / source.name
    changed.write_text(source.read_text().replace(fault["from"], fault["to"]))
    if compiled != source:  # it is one of a batch
        batch = folder / compiled.name
        batch.write_text(compiled.read_text().replace(f'"{source}"', f'"{changed}"'))
        changed = batch
    sound = words[words.index("-o") + 1]
    words[words.index("-o") + 1] = str(folder / "fault.o")
    words[words.index("-c") + 1] = str(changed)
    # For the compiler's time; and a fault may leave a name that nobody uses.
    built = subprocess.run(
        shlex.split(arguments.launch) + words + ["-O1", "-Wno-error"],
        cwd=build.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        error = re.search(r"error: .*", built.stderr)
        return None, "not built: " + (error.group(0) if error else "?")
    return folder / "fault.o", sound


def link_fault(build, program, fault_object, sound, folder):
    """The test's executable with an object instead of the sound one, or before the library that has that."""
    command = build.link_command(program)
    faulty = folder / pathlib.Path(program).name
    linked = command.replace(f" {sound} ", f" {fault_object} ")
    if linked == command:
        linked = command.replace(f" -o {program} ", f" {fault_object} -o {program} ")
    linked = linked.replace(f" -o {program} ", f" -o {faulty} ")
    if str(fault_object) not in linked or str(faulty) not in linked:
        raise SystemExit(f"the command that links {program} is not understood: {command}")
    done = subprocess.run(linked, shell=True, cwd=build.folder, capture_output=True, check=False)
    return faulty if done.returncode == 0 else None


def try_fault(arguments, build, fault):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = str(executable(build.folder, parts_of(fault["test"])[1]).relative_to(build.folder))
        fault_object, sound = compile_fault(arguments, build, fault, program, folder)
        if fault_object is None:
            return {"outcome": sound, "failed": []}
        faulty = link_fault(build, program, fault_object, sound, folder)
        if faulty is None:
            return {"outcome": "not linked", "failed": []}
        outcome, failed = run_test(arguments, fault["test"], faulty)
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
    parser.add_argument("--as-it-is", action="store_true", help="build nothing before")
    parser.add_argument("--sound", action="store_true", help="run the tests without a fault")
    parser.add_argument("--check", action="store_true", help="whether faults fit their sources")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    faults = json.loads((HERE / "faults.json").read_text())
    known = {key_of(fault) for fault in faults}
    results = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}
    results = {key: found for key, found in results.items() if key in known}
    if arguments.table:
        return table(faults, results)
    if arguments.check:
        wrong = list(misfits(faults, ROOT))
        return "\n".join(wrong) or None
    if arguments.build is None:
        parser.error("--build is needed")
    arguments.build = arguments.build.resolve()
    chosen = [f for f in faults if re.search(arguments.only, f["file"] + " " + f["what"])]
    if arguments.sound:
        for test in sorted({fault["test"] for fault in chosen}):
            build_target(arguments, parts_of(test)[1])
            print(test, run_test(arguments, test), flush=True)
        return None
    build = Build(arguments.build)
    wrong = list(misfits(chosen, build.sources))
    if wrong:
        return "\n".join(wrong)
    left = [fault for fault in chosen if arguments.again or key_of(fault) not in results]
    for name in sorted({parts_of(fault["test"])[1] for fault in left}):
        build_target(arguments, name)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        began = time.time()
        tried = {pool.submit(try_fault, arguments, build, fault): fault for fault in left}
        for future in concurrent.futures.as_completed(tried):
            fault, found = tried[future], future.result()
            if not found["outcome"].startswith("not "):
                results[key_of(fault)] = found
            arguments.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
            print(
                f"{time.time() - began:5.0f} s  {found['outcome']:12}  {fault['what']}  {' '.join(found['failed'][:3])}",
                flush=True,
            )
    return None


if __name__ == "__main__":
    sys.exit(main())
