"""Field report 120: only kernel files hold instructions beyond the baseline, and they run no code before dispatch.

usage: baseline_objects_test.py <objdump> <object>...
"""

import os
import re
import subprocess
import sys
import unittest

OBJDUMP, OBJECTS = sys.argv[1], sys.argv[2:]
KERNEL = re.compile(r"_(avx2|avx512|avx512vnni|avx512amx)\.cpp\.(o|obj)$")
WIDE = re.compile(r"%[yz]mm\d|%k[0-7]\b")
# Every instruction in AVX encoding begins with v; the others that do are these, of system code.
SYSTEM = {"verr", "verw", "vmcall", "vmlaunch", "vmresume", "vmxoff", "vmread", "vmwrite", "vmptrld", "vmptrst",
          "vmclear", "vmxon", "vmfunc", "vmrun", "vmload", "vmsave", "vmmcall"}


def beyond_baseline(disassembly):
    """Instructions of an `objdump -d --no-show-raw-insn` output that not every x86-64 machine has."""
    found = []
    for line in disassembly.splitlines():
        match = re.match(r"\s+[0-9a-f]+:\s+(\S+)(.*)", line)
        if not match:
            continue
        name, operands = match.groups()
        if WIDE.search(operands) or (name.startswith("v") and name not in SYSTEM) or name == "popcnt":
            found.append(line.strip())
    return found


def dump(path, *options):
    return subprocess.run([OBJDUMP, *options, path], check=True, capture_output=True, text=True).stdout


class BaselineObjects(unittest.TestCase):
    def test_other_objects_are_baseline(self):
        others = [path for path in OBJECTS if not KERNEL.search(path)]
        self.assertGreater(len(others), 50)
        for path in others:
            with self.subTest(os.path.basename(path)):
                self.assertEqual(beyond_baseline(dump(path, "-d", "--no-show-raw-insn")), [])

    def test_kernel_objects_are_not(self):
        kernels = [path for path in OBJECTS if KERNEL.search(path)]
        self.assertGreater(len(kernels), 1)
        self.assertTrue(any(beyond_baseline(dump(path, "-d", "--no-show-raw-insn")) for path in kernels))

    def test_kernel_objects_start_nothing(self):
        for path in filter(KERNEL.search, OBJECTS):
            with self.subTest(os.path.basename(path)):
                self.assertNotIn(".init_array", dump(path, "-h"))

    def test_instructions_are_seen(self):
        text = ("  10:\tvaddps %ymm1,%ymm2,%ymm3\n  14:\tmovups (%rax),%xmm0\n  18:\tvmovss (%rax),%xmm0\n"
                "  1c:\tkmovw  %eax,%k1\n  20:\tverr   %ax\n  24:\tpopcnt %rax,%rax\n0000 <vadd>:\n")
        self.assertEqual([line.split()[1] for line in beyond_baseline(text)], ["vaddps", "vmovss", "kmovw", "popcnt"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
