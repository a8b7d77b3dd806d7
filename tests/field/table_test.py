"""README.md of this folder: every field report once, every file there, every test case in its file.

usage: table_test.py <source folder>
"""

import os
import re
import sys
import unittest

SOURCE = sys.argv[1]
REPORTS = [
    1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15,
    16, 18, 19, 20, 21, 23, 24, 25,
    30, 31, 32, 33, 34, 35, 36, 37, 40, 41, 43, 44, 46, 47,
    48, 50, 51, 52, 53, 54, 55, 56,
    58, 60, 61, 63, 64, 65, 66, 67, 68, 70, 71, 72,
    79, 80, 81, 82, 83, 84, 86, 88, 89, 90, 91, 92,
    94, 96, 97, 98, 100,
    101, 102, 104, 105,
    107, 109, 110, 111, 112, 113, 114,
    115, 116, 118, 119, 120, 121, 122, 123, 124,
]
ROW = re.compile(r"\| (\d+) \| ([^|]+) \| ([^|]+) \|")
TEST = re.compile(r"`(tests/[^`]+)`(?:: \"([^\"]+)\")?")


def rows(table):
    """[(number, fault, [item])] of a table, the items of the third column apart."""
    found = []
    for line in table.splitlines():
        match = ROW.fullmatch(line)
        if match:
            found.append((int(match[1]), match[2], match[3].split("<br>")))
    return found


def cases(path, text):
    """Names of the test cases of a file."""
    if path.endswith(".py"):
        return re.findall(r"^    def (test_\w+)\(", text, re.MULTILINE)
    return re.findall(r"^TEST_CASE\(\"([^\"]+)\"\)", text, re.MULTILINE)


def fault_of(item, read):
    """What is wrong with an item of the third column, or None. read(path) is the text of a file, or None."""
    match = TEST.fullmatch(item)
    if not match:
        return f"{item} is a test case badly named" if item.startswith("`") or not item else None
    path, case = match.groups()
    text = read(path)
    if text is None:
        return f"{path} is not there"
    if case is None:
        return f"{path} has test cases, of which one must be named" if re.search(r"_test\.(cpp|py)$", path) else None
    return None if case in cases(path, text) else f"{path} has no test case \"{case}\""


def read_source(path):
    full = os.path.join(SOURCE, path)
    if not os.path.isfile(full):
        return None
    with open(full, encoding="utf-8") as file:
        return file.read()


class Table(unittest.TestCase):
    def setUp(self):
        self.rows = rows(read_source("tests/field/README.md"))

    def test_every_report_has_one_row(self):
        self.assertEqual([number for number, _, _ in self.rows], REPORTS)

    def test_every_test_exists(self):
        for number, _, items in self.rows:
            for item in items:
                self.assertIsNone(fault_of(item, read_source), number)

    def test_every_row_names_a_test_or_says_why_not(self):
        for number, fault, items in self.rows:
            self.assertTrue(fault.strip(), number)
            named = any(TEST.fullmatch(item) for item in items)
            self.assertTrue(named or items[0].startswith(("pending: ", "Cannot happen: ")), number)

    def test_every_case_of_this_folder_is_in_the_table(self):
        named = {(match[1], match[2]) for _, _, items in self.rows for match in map(TEST.fullmatch, items) if match}
        for name in sorted(os.listdir(os.path.join(SOURCE, "tests/field"))):
            path = f"tests/field/{name}"
            if name.endswith("_test.cpp"):
                unnamed = [case for case in cases(path, read_source(path)) if (path, case) not in named]
                self.assertEqual(unnamed, [], path)


class Reading(unittest.TestCase):
    FILES = {"tests/a_test.cpp": "TEST_CASE(\"one, two\") {\n", "tests/b_test.py": "    def test_b(self):\n", "tests/c.sh": ""}

    def fault(self, item):
        return fault_of(item, self.FILES.get)

    def test_rows_and_items(self):
        table = "| no. | fault | here |\n|---|---|---|\n| 7 | x y | `tests/a` <br>why |\ntext | 8 | no |\n"
        self.assertEqual(rows(table), [(7, "x y", ["`tests/a` ", "why"])])

    def test_what_exists_is_found(self):
        for item in ["`tests/a_test.cpp`: \"one, two\"", "`tests/b_test.py`: \"test_b\"", "`tests/c.sh`", "Because."]:
            self.assertIsNone(self.fault(item), item)

    def test_what_does_not_exist_is_named(self):
        for item in ["`tests/a_test.cpp`: \"one\"", "`tests/b_test.py`: \"test_a\"", "`tests/d.sh`", "`tests/a_test.cpp`",
                     "`tests/a_test.cpp` \"one, two\"", ""]:
            self.assertIsNotNone(self.fault(item), item)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
