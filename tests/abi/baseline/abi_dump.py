"""The binary interface of a built libfoldkv.so as text, and what changed between two of them (libabigail)."""
import re
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PROJECT = FOLDER.parent.parent.parent
HEADER = PROJECT / "include/foldkv/foldkv.h"
COPY_OF_HEADER = FOLDER.parent / "first_release/foldkv/foldkv.h"
BASELINE = FOLDER / "foldkv.abi"
MARKER = FOLDER / "released"
NONE = "none"

# Only what hosts see, and nothing that differs between machines and compilations.
DUMP_OPTIONS = [
    "--exported-interfaces-only", "--headers-dir", str(HEADER.parent), "--drop-private-types", "--no-architecture",
    "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed", "--no-parameter-names",
    "--type-id-style", "hash"]

STRUCT = re.compile(r" *<class-decl name='(\w+)' size-in-bits='(\d+)' is-struct.*?</class-decl>\n", re.DOTALL)
FIELD = re.compile(r" *<data-member .*?layout-offset-in-bits='(\d+)'.*?<var-decl name='(\w+)'.*?</data-member>\n",
                   re.DOTALL)


def dump(library, abidw="abidw"):
    text = subprocess.run([abidw, *DUMP_OPTIONS, str(library)], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    if "<class-decl name='foldkv_tensor' size-in-bits=" not in text:
        raise SystemExit(f"{library} has no debugging information of its functions: build it with FOLDKV_TESTS=ON")
    return text


def soname(text):
    return re.search(r"soname='([^']*)'", text).group(1)


def header_version():
    text = HEADER.read_text()
    return tuple(int(re.search(rf"^#define FOLDKV_VERSION_{part} (\d+)$", text, re.MULTILINE).group(1))
                 for part in ("MAJOR", "MINOR", "PATCH"))


def released():
    """The release that the baseline is of, or None before the first release of this ABI version."""
    text = MARKER.read_text().strip()
    return None if text == NONE else tuple(int(number) for number in text.split("."))


def name(version):
    return ".".join(str(number) for number in version)


def without_appended_fields(old, new):
    """The new text without fields at the end of structs that carry their size. Such fields are harmless to old hosts
    as long as nothing else moves, which the comparison sees. (libabigail can leave out appended fields by itself, but
    then also overlooks fields that change places.)"""
    old_structs = {match.group(1): match for match in STRUCT.finditer(old)}

    def cut(match):
        before = old_structs.get(match.group(1))
        if before is None:
            return match.group(0)
        fields, old_fields = (FIELD.findall(struct.group(0)) for struct in (match, before))
        if old_fields[:1] != [("0", "struct_size")] or fields[:len(old_fields)] != old_fields:
            return match.group(0)
        text = match.group(0)
        for field in list(FIELD.finditer(text))[:len(old_fields) - 1:-1]:
            text = text[:field.start()] + text[field.end():]
        return text.replace(f"size-in-bits='{match.group(2)}'", f"size-in-bits='{before.group(2)}'", 1)

    return STRUCT.sub(cut, new)


def changes(old, new, abidiff="abidiff", allow_additions=True):
    """What changed, in words; empty when nothing did. With allow_additions new functions and appended fields count as
    nothing."""
    options = ["--no-default-suppression"]
    if allow_additions:
        new = without_appended_fields(old, new)
        options.append("--no-added-syms")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / file for file in ("before.abi", "now.abi")]
        for path, text in zip(paths, (old, new)):
            path.write_text(text)
        result = subprocess.run([abidiff, *options, *map(str, paths)], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, universal_newlines=True)
    # Bits of the exit status: 1 failure, 2 wrong usage, 4 change, 8 change that breaks hosts for certain. What bit 4
    # alone says (a field that moved, say) breaks them as well.
    if result.returncode < 0 or result.returncode & 3:
        raise SystemExit(f"abidiff failed with {result.returncode}:\n{result.stdout}")
    return result.stdout if result.returncode != 0 else ""
