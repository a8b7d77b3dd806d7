"""Shows what foldkv-lab's --json said.

usage: report.py texts GENERATE.json | report.py table GENERATE.json EVALUATE.json

The table is of one codec: the first of EVALUATE.json.
"""

import json
import sys
import textwrap


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def texts(generate):
    for name, title in (("full", "full cache"), ("foldkv", "compressed cache")):
        print(f"\n{title}:")
        for paragraph in generate[name]["text"].strip().splitlines():
            print(textwrap.fill(paragraph, 100, initial_indent="  ", subsequent_indent="  "))
    print(f"\nThe first {generate['equal_first_tokens']} tokens are equal.")


def kib(number):
    return f"{number / 1024:,.0f} KiB"


def table(generate, evaluate):
    full, folded = generate["full"], generate["foldkv"]
    codec = evaluate["codecs"][0]
    figures, latents = codec["all"], codec["latents"]
    tokens = folded["exact_tokens"] + folded["latent_tokens"]
    rows = [
        ("", "full cache", "FoldKV", ""),
        (f"cache of {tokens:,} tokens", kib(full["bytes"]), kib(folded["bytes"]),
         f"{full['bytes'] / folded['bytes']:.1f} times smaller"),
        ("one old token", f"{latents['full_bytes_per_token']:,} B", f"{latents['bytes_per_token']:,} B",
         f"{latents['ratio']:.1f} times smaller"),
        ("prompt, tokens/s", f"{full['prefill_tokens_per_second']:.0f}",
         f"{folded['prefill_tokens_per_second']:.0f}", "compression included"),
        ("writing, tokens/s", f"{full['decode_tokens_per_second']:.1f}",
         f"{folded['decode_tokens_per_second']:.1f}", ""),
        ("perplexity", f"{figures['perplexity_full']:.2f}", f"{figures['perplexity_compressed']:.2f}",
         f"{figures['positions']:,} positions of text not calibrated on"),
        ("KL to the full cache", "0", f"{figures['kl']:.4f}", "nats per token"),
        ("same likeliest token", "100%", f"{100 * figures['top1_agreement']:.1f}%", ""),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        line = f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}"
        print(line.rstrip())
    print(f"\nBesides, all sequences of a model share {kib(folded['shared_bytes'])} of prepared profile and model.")


if __name__ == "__main__":
    {"texts": texts, "table": table}[sys.argv[1]](*map(read, sys.argv[2:]))
