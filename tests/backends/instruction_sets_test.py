"""Code for an instruction set stays in its own objects.

An inline function or template of a shared header that a kernel file does not inline becomes a weak symbol there,
compiled with that file's flags. The linker keeps any one copy for the whole program, and on a machine without those
instructions an innocent caller stops with an illegal instruction. So kernel objects may define weak symbols only under
names of their own instruction set.

usage: instruction_sets_test.py <nm> <object>...
"""

import os
import re
import subprocess
import sys
import unittest

NM, OBJECTS = sys.argv[1], sys.argv[2:]
KERNEL = re.compile(r"_(avx2|avx512|avx512vnni|avx512amx)\.cpp\.(o|obj)$")


def leaks(instruction_set, nm_output):
    """Weak definitions in `nm --defined-only` output whose names do not say the instruction set."""
    found = []
    for line in nm_output.splitlines():
        kind, name = line.split()[-2:]
        if kind in "WVu" and instruction_set not in name and not name.startswith("DW.ref."):
            found.append(name)
    return found


class InstructionSets(unittest.TestCase):
    def test_kernel_objects_leak_nothing(self):
        kernels = [(path, KERNEL.search(path).group(1)) for path in OBJECTS if KERNEL.search(path)]
        self.assertEqual({name for _, name in kernels}, {"avx2", "avx512", "avx512vnni", "avx512amx"})
        for path, instruction_set in kernels:
            with self.subTest(os.path.basename(path)):
                output = subprocess.run([NM, "--defined-only", path], check=True, capture_output=True, text=True).stdout
                self.assertEqual(leaks(instruction_set, output), [])

    def test_leaks_are_seen(self):
        output = ("0 W _ZNSt6vectorIfSaIfEE9push_backEOf\n0 t _ZN12_GLOBAL__N_13addEv\n0 W _ZN6foldkv4avx23addEv\n"
                  "0 V DW.ref.__gxx_personality_v0\n0 T _ZN6foldkv3sumEv\n")
        self.assertEqual(leaks("avx2", output), ["_ZNSt6vectorIfSaIfEE9push_backEOf"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
