"""Field report 123: segments of the shared library begin where pages of 16 KiB, and of 64 KiB, begin.

usage: page_alignment_test.py <library>
"""

import struct
import sys
import unittest

LIBRARY = sys.argv[1]
LOAD = 1


def segments(data):
    """[(offset, address, alignment)] of the loaded segments of a 64-bit little-endian ELF file."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    offset, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found = []
    for index in range(count):
        kind, _, at, address, _, _, _, alignment = struct.unpack_from("<IIQQQQQQ", data, offset + index * size)
        if kind == LOAD:
            found.append((at, address, alignment))
    return found


class PageAlignment(unittest.TestCase):
    def test_segments_begin_on_large_pages(self):
        with open(LIBRARY, "rb") as file:
            loaded = segments(file.read())
        self.assertGreater(len(loaded), 1)
        for offset, address, alignment in loaded:
            self.assertEqual(alignment % 0x10000, 0)
            self.assertEqual((address - offset) % alignment, 0)

    def test_a_header_is_read(self):
        head = bytearray(64 + 2 * 56)
        head[:6] = b"\x7fELF\x02\x01"
        struct.pack_into("<Q", head, 32, 64)
        struct.pack_into("<HH", head, 54, 56, 2)
        struct.pack_into("<IIQQQQQQ", head, 64, 4, 0, 1, 2, 0, 0, 0, 4)
        struct.pack_into("<IIQQQQQQ", head, 120, LOAD, 5, 0x1000, 0x2000, 0, 9, 9, 0x1000)
        self.assertEqual(segments(head), [(0x1000, 0x2000, 0x1000)])
        with self.assertRaises(ValueError):
            segments(b"MZ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
