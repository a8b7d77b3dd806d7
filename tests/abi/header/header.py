"""What foldkv.h declares: functions, and structs with their fields. Understands the subset of C that it uses."""

import re


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def functions(text):
    """Names of all functions that carry FOLDKV_API, in order of declaration."""
    declaration = re.compile(r"^FOLDKV_API\b[^;(]*?\b(foldkv_\w+)\s*\(", re.MULTILINE)
    return declaration.findall(without_comments(text))


def structs(text):
    """{name: [fields]} of every struct that has a body."""
    found = {}
    for name, body in re.findall(r"\bstruct (foldkv_\w+)\s*\{(.*?)\}", without_comments(text), re.DOTALL):
        fields = []
        for declaration in body.split(";"):
            declaration = " ".join(declaration.split())
            if not declaration:
                continue
            # "void (*name)(...)", "T* name", "T a, b", "T name[4]"
            pointer = re.search(r"\(\*(\w+)\)\s*\(", declaration)
            if pointer:
                fields.append(pointer.group(1))
                continue
            for declarator in declaration.split(","):
                fields.append(re.search(r"(\w+)\s*(\[[^\]]*\]\s*)*$", declarator.strip()).group(1))
        found[name] = fields
    return found
