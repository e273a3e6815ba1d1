"""Run benchmark modules, each in a process of its own on one core, and write the page."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib import import_module

from benchmarks import harness


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="modules without `bench_`; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, nothing written")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    known = harness.modules()
    strange = [name for name in options.names if name not in known]
    if strange:
        parser.error(f"no benchmark {', '.join(strange)}: there is {', '.join(known)}")
    if options.here:  # the child: one module, in this process
        harness.use_one_core()
        (name,) = options.names
        rows = import_module(f"benchmarks.bench_{name}").run(options.quick)
        harness.show(rows)
        if not options.quick:
            harness.save(name, rows)
        return 0
    failed = []
    for name in options.names or known:
        print(f"== {name}", flush=True)
        flags = ["--quick"] if options.quick else []
        command = [sys.executable, "-m", "benchmarks", "--here", name, *flags]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    if not options.quick:
        harness.render()
        print(f"== written: {harness.PAGE.relative_to(harness.ROOT)}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
