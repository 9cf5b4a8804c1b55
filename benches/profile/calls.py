"""The parts of plugin calls, in fresh instances and in those that stay: of an empty call, of the
two calls of the digits plugin in each language, and of one plugin and a thousand in turn.

Linux's `perf` samples the sandbox benchmark, and each sample is counted to a part by the name of
its function. Run from the repository root, after `cargo xtask bench sandbox`:

    python3 benches/profile/calls.py > benches/results/calls.md
"""

import collections
import json
import pathlib
import re
import subprocess
import tempfile

CALLS = ["call/empty_fresh", "call/empty_warm"] + [
    f"digits/{language}_{mode}"
    for language in ("rust", "c", "js", "python")
    for mode in ("fresh", "warm")
] + ["rotation/one", "rotation/thousand"]

# The first pattern that is found in "dso function" decides.
PARTS = [
    ("the guest's code", r"^\S+\.code "),
    (
        "reset: the kernel looks for dirty pages (PAGEMAP_SCAN)",
        r"^\[kernel\S* .*(pagemap|walk_p|walk_page|pte|vm_normal|mt_find|find_vma|ioctl|fdget|mas_"
        r"|rcu|cond_resched|kmalloc|kfree|copy_(to|from)_user|syscall|check_object|virt_addr|_read)",
    ),
    ("the kernel: interrupts, scheduling, page faults", r"^\[kernel"),
    ("clocks", r"^\[vdso\]|clock_gettime"),
    ("reset: copies of dirty pages", r"mem(move|set|cpy)|reset_with_pagemap|_ioctl"),
    (
        "reset: the instance's places and the store",
        r"deallocate|free_many|[dD]ecommit|Store<T> as core::ops::drop|drop_in_place<wasmtime",
    ),
    (
        "instantiation",
        r"wasmtime.*(instantiate|Instance::new|allocate|OwnedImports|lookup_vmdef|ModuleRegistry"
        r"|func_loc|funcref|func_ref|initialize|btree_map|Instantiator|index_allocator|store_code"
        r"|Store<T>::new|increment_|TryVec|VMOffsets|push_export)|bforest|sip::",
    ),
    ("the picture: decoding and resizing", r"imaging|png|deflate|zune|adler|crc|fast_image"),
    ("the allocator", r" _?mi_| malloc| free"),
    ("the call: fiber, lifting, lowering, handles (wasmtime)", r"wasmtime|fiber"),
    ("the host's own: limits, meter, places, context", r"gristmill|tokio|futures"),
    ("the set-up of the benchmark", r"sha2"),
    ("other", r""),
]


def newest_bench() -> pathlib.Path:
    """The benchmark's program."""
    found = pathlib.Path("target/release/deps").glob("sandbox-*")
    return max((file for file in found if not file.suffix), key=lambda file: file.stat().st_mtime)


def median_us(name: str) -> float:
    """Criterion's median of the last run."""
    path = pathlib.Path(f"target/criterion/{name}/new/estimates.json")
    return json.loads(path.read_text())["median"]["point_estimate"] / 1000


def shares(name: str) -> dict[str, float]:
    """The percentages of each part of the benchmark `name`."""
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        command = [newest_bench(), "--bench", "--noplot", "--profile-time", "12", f"^{name}$"]
        bench = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # Before that it compiles and loads the guests.
        next(line for line in bench.stderr if "Profiling" in line)
        record = ["perf", "record", "-q", "-F", "4999", "-e", "cpu-clock", "-o", data]
        subprocess.run([*record, "-p", str(bench.pid), "--", "sleep", "9"], check=True)
        bench.communicate()
        report = ["perf", "report", "-i", data, "--no-children", "-s", "dso,sym"]
        report += ["--percent-limit", "0"]
        lines = subprocess.run(report, check=True, capture_output=True, text=True).stdout
    found = collections.Counter()
    for line in lines.splitlines():
        if match := re.match(r"\s*([\d.]+)%\s+(\S+)\s+\[.\] (.*)", line):
            function = f"{match[2]} {match[3]}"
            part = next(part for part, pattern in PARTS if re.search(pattern, function))
            found[part] += float(match[1])
    whole = found.total()
    return {part: 100 * share / whole for part, share in found.items()}


def main() -> None:
    found = {name: (median_us(name), shares(name)) for name in CALLS}
    print("# The parts of plugin calls\n")
    print("Made by `benches/profile/calls.py`. Microseconds are shares of the samples, times the")
    print("median of `cargo xtask bench sandbox`. Functions that the compiler put into others count")
    print("to those. The digits plugin is called twice, before and after the model.\n")
    print("| part |" + "|".join(f" {name.replace('/', ' ').replace('_', ', ')} " for name in CALLS) + "|")
    print("|---|" + "---|" * len(CALLS))
    print("| all |" + "|".join(f" {us:.2f} us " for us, _ in found.values()) + "|")
    for part, _ in PARTS:
        cells = [f" {us * of.get(part, 0) / 100:.2f} " for us, of in found.values()]
        print(f"| {part} |" + "|".join(cells) + "|")


if __name__ == "__main__":
    main()
