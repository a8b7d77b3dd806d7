"""Tables in Markdown from the results of packaging/quality.

usage: quality_tables.py FOLDER
"""

import json
import pathlib
import sys


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def head(*names):
    row(*names)
    row(*("---" for _ in names))


def load(folder, name):
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def loss_table(codecs):
    yardstick = next(codec for codec in codecs if codec["name"] == "bellows")["all"]["kl"]
    head("codec", "bytes of a token", "smaller", "all bytes at 768", "KL, nats", "of BellowsKV", "top-1", "loss")
    for codec in sorted(codecs, key=lambda codec: codec["latents"]["ratio"]):
        figures, token = codec["all"], codec["latents"]
        row(codec["name"], f"{token['bytes_per_token']:,}", f"{token['ratio']:.2f}",
            f"{codec['after_prefix']['ratio']:.2f}", f"{figures['kl']:.4f}", f"{figures['kl'] / yardstick:.2f}",
            f"{figures['top1_agreement']:.3f}", f"{figures['loss_difference']:+.4f}")


def long_table(codecs):
    head("plan", "smaller: a token", "all bytes", "exact", "latents", "means", "positions")
    for codec in codecs:
        figures = codec["after_prefix"]
        roles = figures["by_role"]
        row(codec["name"], f"{codec['latents']['ratio']:.2f}", f"{figures['ratio']:.2f}",
            *(f"{roles[role] / 1024:,.0f} KiB" for role in ("exact", "latent", "mean", "positions")))


def needle_table(tasks):
    head("cache", "smaller, all bytes", "digits right", "95% interval", "of the full cache's", "KL of the answer")
    for number, task in enumerate(tasks):
        full = task["full"]
        if number == 0:
            row("full", "1", f"{full['score']:.3f}", f"{full['score_low']:.3f} to {full['score_high']:.3f}", "1", "0")
        for codec in task["codecs"]:
            row(codec["name"], f"{codec['ratio']:.2f}", f"{codec['score']:.3f}",
                f"{codec['score_low']:.3f} to {codec['score_high']:.3f}", f"{codec['retention']:.3f}",
                f"{codec['kl']:.4f}")


def main():
    folder = pathlib.Path(sys.argv[1])
    losses = [codec for name in ("codecs", "plans") for codec in load(folder, name)["codecs"]]
    loss_table(losses)
    if long := load(folder, "long"):
        print()
        long_table(long["codecs"])
    needles = [load(folder, name) for name in ("needle-bellows", "needle-plans")]
    if all(needles):
        print()
        needle_table([task for needle in needles for task in needle["tasks"]])


if __name__ == "__main__":
    main()
