"""Draws what compression loses against how much smaller it makes a cache, or what was measured of layers.

usage: plot.py EVALUATE.json... --out PICTURE [--ratio latents|after_prefix|after_window] [--text NAME]
               [--by file|codec]
       plot.py --layers LAYERS.json --out PICTURE

EVALUATE.json: what foldkv-lab evaluate --json said. PICTURE: its ending names the format, png or svg for example.
Each codec is a point. Lines join the codecs of one file, or those whose names differ only in what follows the last
dash: plan12-14, plan12-21 and plan12-28 are the family plan12.
LAYERS.json: what foldkv-lab layers wrote. Its three figures of each layer are drawn below each other.
"""

import argparse
import json
import os
import sys


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("evaluations", nargs="*", metavar="EVALUATE.json", help="what foldkv-lab evaluate --json said")
    parser.add_argument("--layers", metavar="LAYERS.json", help="draw what foldkv-lab layers wrote instead")
    parser.add_argument("--out", required=True, metavar="PICTURE", help="file to write; its ending names the format")
    parser.add_argument("--ratio", choices=("latents", "after_prefix", "after_window"), default="latents",
                        help="latents alone (default), or all bytes after the prefix or the window")
    parser.add_argument("--text", help="losses on the texts whose path holds this; default: mean of all texts")
    parser.add_argument("--by", choices=("file", "codec"), default="file",
                        help="a line for each file (default) or for each family of codec names")
    parsed = parser.parse_args(arguments)
    if bool(parsed.evaluations) == bool(parsed.layers):
        parser.error("expected evaluations, or --layers alone")
    return parsed


def loss(codec, text):
    if text is None:
        return codec["all"]["kl"]
    losses = [figures["kl"] for figures in codec["texts"] if text in figures["text"]]
    if not losses:
        sys.exit(f"plot.py: no text of codec {codec['name']} is named {text}")
    return sum(losses) / len(losses)


def read_points(path, ratio, text):
    """(codec name, times smaller, KL) of each codec that compresses."""
    with open(path, encoding="utf-8") as file:
        evaluation = json.load(file)
    if "codecs" not in evaluation:
        sys.exit(f"plot.py: {path} holds no codecs; expected what foldkv-lab evaluate --json says of texts")
    points = [(codec["name"], codec[ratio]["ratio"], loss(codec, text)) for codec in evaluation["codecs"]]
    # Neither axis has a place for a codec that keeps everything exact.
    return [point for point in points if point[1] > 0 and point[2] > 0]


def collect_lines(arguments):
    """Points by the name of their line, by rising ratio."""
    lines = {}
    for path in arguments.evaluations:
        for name, ratio, kl in read_points(path, arguments.ratio, arguments.text):
            family = name.rpartition("-")[0] or name
            line = os.path.splitext(os.path.basename(path))[0] if arguments.by == "file" else family
            lines.setdefault(line, []).append((ratio, kl, name))
    return {line: sorted(points) for line, points in lines.items()}


def load_pyplot():
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot.py: needs matplotlib: apt-get install python3-matplotlib, or pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def draw(lines, arguments):
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for line, points in lines.items():
        axes.plot([ratio for ratio, _, _ in points], [kl for _, kl, _ in points], marker="o", label=line)
        for ratio, kl, name in points:
            axes.annotate(name, (ratio, kl), xytext=(4, 4), textcoords="offset points", fontsize=7)
    axes.set_yscale("log")
    axes.set_xlabel("times smaller than 16-bit numbers" +
                    {"latents": " (latents alone)", "after_prefix": " (all bytes, after the prefix)",
                     "after_window": " (all bytes, after the window)"}[arguments.ratio])
    axes.set_ylabel("KL to the full cache, nats per token")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(arguments.out, dpi=150)


def draw_layers(arguments):
    with open(arguments.layers, encoding="utf-8") as file:
        layers = json.load(file)
    figures = (("value_sensitivities", "noise on the values:\nKL, nats per token", "log"),
               ("importances", f"cut alone to {layers['options']['cut_to']} tokens:\nKL, nats per token", "log"),
               ("similarities", "cosine of keys with and\nwithout what came before", "linear"))
    figure, plots = load_pyplot().subplots(len(figures), sharex=True, figsize=(7, 7), layout="constrained")
    for axes, (name, label, scale) in zip(plots, figures):
        axes.plot(range(len(layers[name])), layers[name], marker="o")
        axes.set_yscale(scale)
        axes.set_ylabel(label)
        axes.grid(True, which="both", alpha=0.3)
    plots[-1].set_xlabel(f"layer of {layers['model']}")
    figure.savefig(arguments.out, dpi=150)


def main(arguments):
    if arguments.layers:
        draw_layers(arguments)
        return
    lines = collect_lines(arguments)
    if not lines:
        sys.exit("plot.py: no codec compresses anything: there is nothing to draw")
    draw(lines, arguments)


if __name__ == "__main__":
    main(parse_arguments(sys.argv[1:]))
