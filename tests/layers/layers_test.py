"""Who may include whom. Reads the include lines of every source file and checks them against the tables below.

usage: layers_test.py <project folder>
"""

import os
import re
import shutil
import sys
import tempfile
import unittest

PROJECT = sys.argv[1]

# A file of one layer includes only its own layer and those before it.
LAYERS = ["runtime/base", "runtime/model", "runtime/memory", "runtime/codec", "runtime/profile",
          "runtime/calibration", "runtime/policy", "runtime/cache", "abi"]

# Project folders that a folder may include besides itself. Longest match wins.
ALLOWED = {layer: LAYERS[:rank] + ["backends/interface", "include"] for rank, layer in enumerate(LAYERS)}
ALLOWED["backends"] = ["runtime/base", "backends/interface"]
ALLOWED["backends/interface"] = ["runtime/base"]
ALLOWED["backends/reference"] = ALLOWED["backends/cpu"] = ALLOWED["backends"]
ALLOWED["include"] = []
ALLOWED["samples"] = ["include"]

# Third-party headers that only some files may include; everything else is free.
GUARDED = {
    # The lab is an engine of its own and brings its own products; nothing of the library sees them.
    "oneDNN": (r"^(oneapi/dnnl/|dnnl)", [r"^backends/cpu/", r"^samples/lab/"]),
    "CUDA": (r"^(cuda|cublas|cudnn|nvrtc|cutlass|cute/)", [r"^backends/cuda/"]),
    "FlatBuffers": (r"^flatbuffers/", [r"^runtime/profile/", r"^runtime/cache/snapshot/"]),
    "Eigen": (r"^(Eigen/|unsupported/Eigen/)", [r"^runtime/calibration/", r"^runtime/codec/",
                                                r"^backends/reference/"]),
}

# (file, header): reason. An exception that no longer occurs is an error, so that this list stays short.
_REGISTRY = "the built-in backends are named somewhere: the one table from which a runtime opens its device"
EXCEPTIONS = {
    ("abi/backend_registry.cpp", "backends/reference/reference_backend.h"): _REGISTRY,
    ("abi/backend_registry.cpp", "backends/cpu/cpu_backend.h"): _REGISTRY,
}

SOURCE = re.compile(r"\.(h|hpp|c|cpp|cc|cu|cuh|inc)$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
ROOMS = ("runtime", "backends", "abi", "include", "samples")


def owner(path):
    """The entry of ALLOWED that a file belongs to, or None."""
    folder = os.path.dirname(path)
    while folder:
        if folder in ALLOWED:
            return folder
        folder = os.path.dirname(folder)
    return None


def source_files(root):
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(root, room)):
            for name in sorted(names):
                if SOURCE.search(name):
                    yield os.path.relpath(os.path.join(folder, name), root)


def resolve(root, path, header):
    """The project file that an include line means, or None for a header of others."""
    for base in (os.path.dirname(path), "", "include"):
        candidate = os.path.normpath(os.path.join(base, header))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    # Made by the schema compiler, in the build folder, under the path of its schema.
    schema = re.sub(r"_generated\.h$", ".fbs", header)
    if schema != header and os.path.isfile(os.path.join(root, schema)):
        return header
    return None


def is_public(target):
    return target.startswith("include/")


def violations(root, exceptions, paths=None):
    """All broken rules below root (or in some of its files), as sentences, and the exceptions that were needed."""
    found, used = [], set()
    for path in source_files(root) if paths is None else paths:
        home = owner(path)
        if home is None:
            found.append(f"{path}: its folder is in no table of this test")
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        for match in INCLUDE.finditer(text):
            header = match.group(2)
            where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
            if (path, header) in exceptions:
                used.add((path, header))
                continue
            target = resolve(root, path, header)
            if target is None:
                if header.split("/")[0] in ROOMS and "/" in header:
                    found.append(f"{where}: {header} does not exist")
                for library, (pattern, places) in GUARDED.items():
                    if re.search(pattern, header) and not any(re.search(place, path) for place in places):
                        found.append(f"{where}: {library} header {header} outside its place")
                continue
            if ".." in header.split("/"):
                found.append(f"{where}: {header} climbs out of its folder; write the path from the top")
            if target.endswith("_generated.h") and not any(re.search(p, path) for p in GUARDED["FlatBuffers"][1]):
                found.append(f"{where}: {header} brings FlatBuffers outside its place")
            if target.startswith("tests/"):
                found.append(f"{where}: {header} belongs to the tests")
                continue
            target_owner = owner(target)
            if target_owner != home and target_owner not in ALLOWED[home]:
                found.append(f"{where}: {home} may not include {target_owner or target}")
    return found, used


class Tree(unittest.TestCase):
    def test_this_tree_keeps_the_rules(self):
        found, used = violations(PROJECT, EXCEPTIONS)
        self.assertEqual(found, [], "\n" + "\n".join(found))
        self.assertEqual(set(EXCEPTIONS) - used, set(), "exceptions without need")

    def test_this_tree_is_seen(self):
        files = list(source_files(PROJECT))
        for room in ROOMS:
            self.assertTrue(any(path.startswith(room + "/") for path in files), f"no source file in {room}/")


class Planted(unittest.TestCase):
    """Each rule catches what it is for: a copy of the tree with one bad line is refused, naming file and line."""

    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="foldkv-layers-")
        for room in ROOMS:
            shutil.copytree(os.path.join(PROJECT, room), os.path.join(cls.root, room))
        os.mkdir(os.path.join(cls.root, "tests"))
        cls.plant_file("tests/helper.h", "")
        for layer in LAYERS + ["runtime/policy", "backends/reference", "backends/cpu", "samples"]:
            cls.plant_file(f"{layer}/planted_target.h", "")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    @classmethod
    def plant_file(cls, path, text):
        full = os.path.join(cls.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def found_with(self, path, line):
        self.plant_file(path, f"\n{line}\n")
        try:
            found, _ = violations(self.root, EXCEPTIONS, [path])
        finally:
            os.remove(os.path.join(self.root, path))
        return found

    def assert_refused(self, path, line):
        found = self.found_with(path, line)
        self.assertEqual(len(found), 1, f"{path} with {line}: {found}")
        self.assertTrue(found[0].startswith(f"{path}:2: "), found)

    def assert_allowed(self, path, line):
        self.assertEqual(self.found_with(path, line), [], f"{path} with {line}")

    def test_layers_run_one_way(self):
        for rank, layer in enumerate(LAYERS):
            for other_rank, other in enumerate(LAYERS):
                check = self.assert_refused if other_rank > rank else self.assert_allowed
                check(f"{layer}/planted.cpp", f'#include "{other}/planted_target.h"')

    def test_backends(self):
        for path, target in [("runtime/base/planted.h", "backends/reference"), ("abi/planted.cpp", "backends/cpu"),
                             ("runtime/cache/planted.cpp", "backends/reference"),
                             ("backends/reference/planted.cpp", "backends/cpu"),
                             ("backends/cpu/planted.h", "backends/reference"),
                             ("backends/cpu/planted.cpp", "runtime/memory"),
                             ("backends/interface/planted.h", "runtime/model"),
                             ("backends/interface/planted.h", "backends/cpu")]:
            self.assert_refused(path, f'#include "{target}/planted_target.h"')
        self.assert_allowed("backends/cpu/planted.cpp", '#include "runtime/base/planted_target.h"')

    def test_samples_see_the_public_headers_only(self):
        for target in ["runtime/base", "abi", "backends/cpu"]:
            self.assert_refused("samples/lab/planted.cpp", f'#include "{target}/planted_target.h"')
        self.assert_refused("samples/planted.c", '#include "runtime/base/planted_target.h"')
        self.assert_allowed("samples/planted.c", "#include <foldkv/foldkv.h>")
        self.assert_allowed("samples/planted.c", '#include "foldkv/foldkv.h"')
        self.assert_allowed("samples/lab/planted.cpp", '#include "samples/planted_target.h"')

    def test_nobody_includes_upwards_by_dots_or_from_tests(self):
        self.assert_refused("runtime/cache/planted.cpp", '#include "../cache/planted_target.h"')
        self.assert_refused("runtime/cache/planted.cpp", '#include "tests/helper.h"')

    def test_public_headers_stand_alone(self):
        self.assert_refused("include/foldkv/planted.h", '#include "runtime/base/planted_target.h"')

    def test_libraries_stay_in_their_places(self):
        for path, header in [("runtime/cache/planted.cpp", "oneapi/dnnl/dnnl.hpp"),
                             ("backends/reference/planted.cpp", "dnnl.hpp"),
                             ("samples/planted.c", "oneapi/dnnl/dnnl.h"),
                             ("backends/cpu/planted.cpp", "cuda_runtime.h"),
                             ("samples/lab/planted.cpp", "cublasLt.h"),
                             ("runtime/calibration/planted.cpp", "flatbuffers/flatbuffers.h"),
                             ("runtime/cache/planted.cpp", "flatbuffers/verifier.h"),
                             ("runtime/memory/planted.cpp", "Eigen/Dense"),
                             ("backends/cpu/planted.cpp", "Eigen/Core")]:
            self.assert_refused(path, f"#include <{header}>")
            self.assert_refused(path, f'  #  include "{header}"')
        for path, header in [("backends/cpu/planted.cpp", "oneapi/dnnl/dnnl.hpp"),
                             ("runtime/profile/planted.cpp", "flatbuffers/flatbuffers.h"),
                             ("runtime/cache/snapshot/writer.cpp", "flatbuffers/flatbuffers.h"),
                             ("runtime/calibration/planted.cpp", "Eigen/Eigenvalues")]:
            self.assert_allowed(path, f"#include <{header}>")

    def test_generated_schema_counts_as_flatbuffers(self):
        self.plant_file("runtime/profile/planted.fbs", "")
        header = '#include "runtime/profile/planted_generated.h"'
        self.assert_allowed("runtime/profile/planted.cpp", header)
        self.assert_refused("runtime/cache/planted.cpp", header)

    def test_headers_that_do_not_exist_and_folders_without_rules(self):
        self.assert_refused("runtime/cache/planted.cpp", '#include "runtime/cache/no_such.h"')
        found = self.found_with("runtime/attic/planted.cpp", "")
        self.assertEqual(len(found), 1)

    def test_an_exception_covers_one_line_of_one_file(self):
        exceptions = {("runtime/cache/planted.cpp", "backends/cpu/planted_target.h"): "for this test"}
        self.plant_file("runtime/cache/planted.cpp", '#include "backends/cpu/planted_target.h"\n'
                        '#include "backends/reference/planted_target.h"\n')
        try:
            found, used = violations(self.root, exceptions)
        finally:
            os.remove(os.path.join(self.root, "runtime/cache/planted.cpp"))
        self.assertEqual(used, set(exceptions))
        self.assertEqual([s for s in found if s.startswith("runtime/cache/planted.cpp")],
                         ["runtime/cache/planted.cpp:2: runtime/cache may not include backends/reference"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
