"""The shared library exports what abi/foldkv.symbols says, the header declares it, and layout.c names every field.

usage: exports_test.py <nm> <library> <symbols> <header> <layout.c>
"""

import re
import subprocess
import sys
import unittest

import header

NM, LIBRARY, SYMBOLS, HEADER, LAYOUT = sys.argv[1:6]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def exported(nm_output):
    """{name: version node} of the defined dynamic symbols, without the nodes themselves."""
    found = {}
    for line in nm_output.splitlines():
        kind, symbol = line.split()[-2:]
        name, _, node = symbol.partition("@")
        if kind == "A" and re.fullmatch(r"FOLDKV_\d+\.\d+", name):
            continue
        found[name] = node.lstrip("@")
    return found


class Exports(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.lines = read(SYMBOLS).splitlines()
        self.listed = dict(line.split() for line in self.lines)
        self.header = read(HEADER)

    def test_list_is_sorted_and_without_repetition(self):
        self.assertEqual(self.lines, sorted(set(self.lines)))
        self.assertEqual(len(self.listed), len(self.lines))

    def test_library_exports_the_list_and_nothing_else(self):
        output = subprocess.run([NM, "-D", "--defined-only", "--with-symbol-versions", LIBRARY], check=True,
                                capture_output=True, text=True).stdout
        self.assertEqual(exported(output), self.listed)

    def test_header_declares_the_list_and_nothing_else(self):
        declared = header.functions(self.header)
        self.assertEqual(sorted(declared), sorted(self.listed))

    def test_every_function_of_the_header_is_exported_by_macro(self):
        # A prototype without FOLDKV_API would be hidden; all names followed by "(" in code are prototypes.
        code = re.sub(r"^\s*#.*$", "", header.without_comments(self.header), flags=re.MULTILINE)
        self.assertEqual(sorted(set(re.findall(r"\b(foldkv_\w+)\s*\(", code))), sorted(self.listed))

    def test_layout_names_every_field_of_every_struct(self):
        layout = read(LAYOUT)
        named = {name: [] for name in re.findall(r"^STRUCT\((\w+),", layout, re.MULTILINE)}
        for struct, field in re.findall(r"^FIELD\((\w+), (\w+),", layout, re.MULTILINE):
            named[struct].append(field)
        self.assertEqual(named, header.structs(self.header))

    def test_layout_names_every_enumerator(self):
        bodies = re.findall(r"\benum\s*\{(.*?)\}", header.without_comments(self.header), re.DOTALL)
        declared = [name for body in bodies for name in re.findall(r"\b(FOLDKV_\w+)\s*=", body)]
        self.assertGreater(len(declared), 0)
        self.assertEqual(re.findall(r"^VALUE\((\w+),", read(LAYOUT), re.MULTILINE), declared)


class Parsing(unittest.TestCase):
    def test_exports_keep_names_and_nodes(self):
        output = "0 A FOLDKV_0.1\n1234 T foldkv_version@@FOLDKV_0.1\n5678 T leaked\n9abc W _ZN3foo3barEv\n"
        self.assertEqual(exported(output),
                         {"foldkv_version": "FOLDKV_0.1", "leaked": "", "_ZN3foo3barEv": ""})

    def test_functions_of_several_lines_and_none_from_comments(self):
        text = "/* FOLDKV_API int foldkv_old(void); */\nFOLDKV_API const char*\n    foldkv_a(int x,\n  int y);\n"
        self.assertEqual(header.functions(text), ["foldkv_a"])

    def test_fields_of_all_shapes(self):
        text = """typedef struct foldkv_x {
          uint32_t size; /* a; b */
          const int* p;
          char name[4];
          foldkv_t a, b;
          void (*call)(void* context, int n);
        } foldkv_x;"""
        self.assertEqual(header.structs(text), {"foldkv_x": ["size", "p", "name", "a", "b", "call"]})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
