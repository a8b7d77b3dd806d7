"""Field report 116: two copies of the shared library in one process, each with symbols of its own.

usage: side_by_side_test.py <library>
"""

import ctypes
import os
import shutil
import sys
import tempfile
import unittest

LIBRARY = sys.argv[1]


class RuntimeOptions(ctypes.Structure):
    """foldkv_runtime_options; all that is zero means default."""
    _fields_ = [("struct_size", ctypes.c_uint32), ("device", ctypes.c_int32), ("backend", ctypes.c_char_p),
                ("budget_bytes", ctypes.c_uint64), ("threads", ctypes.c_int32), ("deterministic", ctypes.c_int32),
                ("instruction_set", ctypes.c_char_p), ("parallel_for", ctypes.c_void_p),
                ("parallel_for_context", ctypes.c_void_p)]


def open_runtime(library):
    options = RuntimeOptions(ctypes.sizeof(RuntimeOptions))
    options.budget_bytes = 1 << 20
    options.threads = 2
    runtime = ctypes.c_void_p()
    status = library.foldkv_runtime_create(ctypes.byref(options), ctypes.byref(runtime), None)
    return status, runtime


class SideBySide(unittest.TestCase):
    def test_two_copies_work_beside_one_another(self):
        with tempfile.TemporaryDirectory() as folder:
            libraries = []
            for name in ["first.so", "second.so"]:
                path = os.path.join(folder, name)
                shutil.copyfile(LIBRARY, path)
                libraries.append(ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL))
            runtimes = [open_runtime(library) for library in libraries]
            addresses = {ctypes.cast(library.foldkv_version, ctypes.c_void_p).value for library in libraries}
            self.assertEqual(len(addresses), 2)
            for library, (status, runtime) in zip(libraries, runtimes):
                self.assertEqual(status, 0)
                self.assertEqual(library.foldkv_abi_version(), libraries[0].foldkv_abi_version())
                library.foldkv_runtime_release(runtime)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
