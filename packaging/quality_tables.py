"""Tables in Markdown from the results of packaging/quality.

usage: quality_tables.py FOLDER
       quality_tables.py --exact-tokens EVALUATE.json

The second prints how many tokens of an exact cache take the bytes that bellowskv-evict takes there, budget by budget,
in whole pages of 16 tokens.
"""

import json
import pathlib
import random
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


def layers_table(layers):
    head("layer", "noise on values, KL", "cut alone, KL", "keys' cosine")
    for layer, figures in enumerate(zip(layers["value_sensitivities"], layers["importances"], layers["similarities"])):
        row(str(layer), *(f"{figure:.4g}" for figure in figures))
    print()
    for name, correlation in layers["rank_correlations"].items():
        print(f"- {name.replace('_', ', ')}: {correlation:.3f}")


def by_budget(codecs):
    """{policy: {budget: codec}}: what a codec's name says, the policy first and the budget last."""
    policies = {}
    for codec in codecs:
        policy, _, budget = codec["name"].rpartition(" ")
        policies.setdefault(policy or budget, {})[budget] = codec
    return policies


def policies_table(codecs):
    policies = by_budget(codecs)
    budgets = list(max(policies.values(), key=len))
    head("policy", *(f"KL at {budget}" for budget in budgets), *(f"smaller at {budget}" for budget in budgets),
         f"top-1 at {budgets[1]}", f"kept at {budgets[-1]}")
    policies = {policy: found for policy, found in policies.items() if len(found) == len(budgets)}
    for policy, found in sorted(policies.items(), key=lambda item: item[1][budgets[1]]["all"]["kl"]):
        row(policy, *(f"{found[budget]['all']['kl']:.4f}" for budget in budgets),
            *(f"{found[budget]['after_prefix']['ratio']:.2f}" for budget in budgets),
            f"{found[budgets[1]]['all']['top1_agreement']:.3f}", f"{found[budgets[-1]]['after_prefix']['kept']:.4f}")


def evicted_table(codecs):
    head("codec", "kept", "all bytes", "KL, nats", "top-1", "loss")
    for codec in codecs:
        figures = codec["all"]
        row(codec["name"], f"{codec['after_prefix']['kept']:.4f}", f"{codec['after_prefix']['ratio']:.2f}",
            f"{figures['kl']:.4f}", f"{figures['top1_agreement']:.3f}", f"{figures['loss_difference']:+.4f}")


def exact_tokens(codecs):
    """Tokens of an exact cache in the bytes of each budget of bellowskv-evict, to the nearest page."""
    stats = [codec["after_prefix"] for codec in codecs if "bellowskv-evict" in codec["name"]]
    return [16 * round(figures["bytes"] * figures["tokens"] / figures["full_bytes"] / 16) for figures in stats]


def equal_table(groups, exact):
    head("latents of 4 layers, 8 bits, one decision of each", "all bytes", "KL, nats", "exact cache, snapkv",
         "KL, nats", "times more", "exact cache, bellowskv-evict", "KL, nats", "times more")
    latents = [codec for codec in groups if "bellowskv-evict" in codec["name"]]
    rivals = {codec["name"]: codec for codec in exact}
    for codec, tokens in zip(latents, exact_tokens(groups)):
        cells = [codec["name"].rpartition(" ")[2], f"{codec['after_prefix']['ratio']:.2f}", f"{codec['all']['kl']:.4f}"]
        for policy in ("snapkv", "bellowskv-evict"):
            rival = rivals[f"{policy} {tokens}"]
            cells += [f"{rival['after_prefix']['ratio']:.2f}", f"{rival['all']['kl']:.4f}",
                      f"{rival['all']['kl'] / codec['all']['kl']:.1f}"]
        row(*cells)


def paired_interval(differences, resamples=10000):
    """Mean and the middle 95% of the means of resamples of windows."""
    draw = random.Random(1)
    means = sorted(sum(draw.choices(differences, k=len(differences))) / len(differences) for _ in range(resamples))
    return sum(differences) / len(differences), means[int(0.025 * resamples)], means[int(0.975 * resamples)]


def ripple_table(codecs):
    policies = by_budget(codecs)
    head("budget", "windows", "snapkv, KL", "ripplekv, KL", "difference in each window, mean", "95% interval",
         "windows where ripplekv loses less")
    for budget, uniform in policies["snapkv"].items():
        ripple = policies["ripplekv"][budget]
        differences = [b - a for a, b in zip(uniform["all"]["window_kl"], ripple["all"]["window_kl"])]
        mean, low, high = paired_interval(differences)
        row(budget, str(len(differences)), f"{uniform['all']['kl']:.4f}", f"{ripple['all']['kl']:.4f}", f"{mean:+.5f}",
            f"{low:+.5f} to {high:+.5f}", str(sum(difference < 0 for difference in differences)))


def eviction_tables(folder):
    if layers := load(folder, "layers"):
        print()
        layers_table(layers)
    for name, table in (("policies", policies_table), ("combined", evicted_table), ("groups", evicted_table),
                        ("ripple", ripple_table)):
        if result := load(folder, name):
            print()
            table(result["codecs"])
    groups, equal = load(folder, "groups"), load(folder, "equal")
    if groups and equal:
        print()
        equal_table(groups["codecs"], equal["codecs"])


def main():
    if sys.argv[1] == "--exact-tokens":
        codecs = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))["codecs"]
        print("\n".join(map(str, exact_tokens(codecs))))
        return
    folder = pathlib.Path(sys.argv[1])
    codecs, plans = load(folder, "codecs"), load(folder, "plans")
    if codecs and plans:
        loss_table(codecs["codecs"] + plans["codecs"])
    if long := load(folder, "long"):
        print()
        long_table(long["codecs"])
    needles = [load(folder, name) for name in ("needle-bellows", "needle-plans")]
    if all(needles):
        print()
        needle_table([task for needle in needles for task in needle["tasks"]])
    eviction_tables(folder)


if __name__ == "__main__":
    main()
