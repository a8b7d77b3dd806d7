"""The gate of the ABI: the built library against the stored baseline. packaging/ABI.md says what to do when it closes.

usage: baseline_test.py <abidw> <abidiff> <libfoldkv.so>
"""
import sys

import abi_dump


def complaints(abidw, abidiff, library):
    old, new = abi_dump.BASELINE.read_text(), abi_dump.dump(library, abidw)
    released, version = abi_dump.released(), abi_dump.header_version()
    stale = "is older than {}: run packaging/abi_baseline <build folder>"
    if released is None:
        # Not released: nobody is broken by a change, but the baseline has to say what will be released.
        if abi_dump.COPY_OF_HEADER.read_bytes() != abi_dump.HEADER.read_bytes():
            yield f"{abi_dump.COPY_OF_HEADER} " + stale.format(abi_dump.HEADER)
        report = abi_dump.changes(old, new, abidiff, allow_additions=False)
        if report:
            yield report + f"{abi_dump.BASELINE} " + stale.format("the library")
        return
    report = abi_dump.changes(old, new, abidiff)
    if report:
        yield report + f"This breaks hosts that were built with {abi_dump.name(released)}: see packaging/ABI.md."
    if version < released:
        yield f"the header is of version {abi_dump.name(version)}, but {abi_dump.name(released)} is released"
    if version == released:
        report = abi_dump.changes(old, new, abidiff, allow_additions=False)
        if report:
            yield report + f"{abi_dump.name(released)} is released: raise the version in foldkv.h before adding to it."


def main():
    found = list(complaints(*sys.argv[1:]))
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
