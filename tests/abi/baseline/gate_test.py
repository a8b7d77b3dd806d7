"""That the gate closes: the library's own dump against copies of it in which one thing was changed.

usage: gate_test.py <abidw> <abidiff> <libfoldkv.so>
"""
import re
import sys
import unittest

import abi_dump

ABIDW, ABIDIFF, LIBRARY = sys.argv[1:4]
TEXT = abi_dump.dump(LIBRARY, ABIDW)


def struct(name):
    return next(match.group(0) for match in abi_dump.STRUCT.finditer(TEXT) if match.group(1) == name)


def fields(text):
    return [match.group(0) for match in abi_dump.FIELD.finditer(text)]


def without_last_field(name):
    """TEXT in which the struct ends one field earlier."""
    text = struct(name)
    last = fields(text)[-1]
    offset = re.search(r"layout-offset-in-bits='(\d+)'", last).group(1)
    return TEXT.replace(text, re.sub(r"size-in-bits='\d+'", f"size-in-bits='{offset}'", text.replace(last, ""), 1))


def without_function(name):
    text = re.sub(rf" *<elf-symbol name='{name}' .*\n", "", TEXT)
    return re.sub(rf" *<function-decl name='{name}'.*?</function-decl>\n", "", text, flags=re.DOTALL)


def report(old, new, **options):
    return abi_dump.changes(old, new, ABIDIFF, **options)


class Gate(unittest.TestCase):
    def test_nothing_changed(self):
        self.assertEqual(report(TEXT, TEXT, allow_additions=False), "")

    def test_a_function_went(self):
        self.assertIn("foldkv_sequence_fork", report(TEXT, without_function("foldkv_sequence_fork")))

    def test_a_function_came(self):
        old = without_function("foldkv_sequence_fork")
        self.assertEqual(report(old, TEXT), "")
        self.assertIn("foldkv_sequence_fork", report(old, TEXT, allow_additions=False))

    def test_a_parameter_went(self):
        function = re.search(r"<function-decl name='foldkv_sequence_fork'.*?</function-decl>", TEXT, re.DOTALL).group(0)
        self.assertIn("foldkv_sequence_fork", report(TEXT, TEXT.replace(
            function, re.sub(r" *<parameter .*\n", "", function, count=1))))

    def test_fields_changed_places(self):
        text = struct("foldkv_rebuild_options")
        swapped = text.replace("'layer'", "'?'").replace("'side'", "'layer'").replace("'?'", "'side'")
        self.assertIn("foldkv_rebuild_options", report(TEXT, TEXT.replace(text, swapped)))

    def test_a_field_changed_its_type(self):
        text = struct("foldkv_feed")
        types = dict(re.findall(r"<var-decl name='(\w+)' type-id='(\w+)'", text))
        changed = text.replace(f"name='flags' type-id='{types['flags']}'",
                               f"name='flags' type-id='{types['token_count']}'")
        self.assertIn("foldkv_feed", report(TEXT, TEXT.replace(text, changed)))

    def test_a_field_went(self):
        self.assertIn("foldkv_rebuild_options", report(TEXT, without_last_field("foldkv_rebuild_options")))

    def test_a_field_came_at_the_end(self):
        old = without_last_field("foldkv_rebuild_options")
        self.assertEqual(report(old, TEXT), "")
        self.assertIn("foldkv_rebuild_options", report(old, TEXT, allow_additions=False))

    def test_a_field_came_in_the_middle(self):
        text = struct("foldkv_rebuild_options")
        old = TEXT.replace(text, text.replace(fields(text)[2], ""))
        self.assertIn("foldkv_rebuild_options", report(old, TEXT))

    def test_the_frozen_struct_grew(self):
        self.assertIn("foldkv_tensor", report(without_last_field("foldkv_tensor"), TEXT))

    def test_a_struct_inside_others_grew(self):
        """It carries its size, but the fields after it moved."""
        ledger = struct("foldkv_ledger")
        grown = ledger.replace("size-in-bits='576'", "size-in-bits='640'")
        last = fields(ledger)[-1]
        grown = grown.replace(last, last + last.replace("'512'", "'576'").replace("'scratch'", "'more'"))
        stats = struct("foldkv_runtime_stats")
        moved = stats
        for field in fields(stats)[fields(stats).index(next(f for f in fields(stats) if "'ledger'" in f)) + 1:]:
            offset = re.search(r"in-bits='(\d+)'", field).group(1)
            moved = moved.replace(field, field.replace(offset, str(int(offset) + 64)))
        self.assertNotEqual(ledger, grown)
        self.assertNotEqual(stats, moved)
        self.assertIn("foldkv_runtime_stats", report(TEXT, TEXT.replace(ledger, grown).replace(stats, moved)))

    def test_another_soname(self):
        self.assertNotEqual(report(TEXT, TEXT.replace(abi_dump.soname(TEXT), "libfoldkv.so.99")), "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
