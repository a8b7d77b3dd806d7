/*
 * 6. Eviction: which tokens stay.
 *
 * A policy is five parts: what scores a token, how scores of rows, neighbours and heads become one, who decides together,
 * and how a budget falls on layers and heads. A name fills them in as the authors of a system set them; any part can be
 * changed. What is evicted frees its bytes at once, and what is left is read at the positions that it always had.
 */
#include "course.h"

enum { LAYERS = 2, QUERY_HEADS = 4, KV_HEADS = 2, HEAD_SIZE = 16, PROMPT = 300, NEEDLE = 140, BUDGET = 48 };
enum { QUERY_WIDTH = QUERY_HEADS * HEAD_SIZE, KEY_WIDTH = KV_HEADS * HEAD_SIZE };

static float queries[PROMPT * QUERY_WIDTH], keys[PROMPT * KEY_WIDTH], values[PROMPT * KEY_WIDTH];
static float output[PROMPT * QUERY_WIDTH];

static foldkv_model* make_model(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_layer layers[LAYERS];
  foldkv_model_options options = FOLDKV_INIT(foldkv_model_options);
  foldkv_model* model = NULL;
  for (int layer = 0; layer < LAYERS; ++layer) {
    layers[layer] = (foldkv_layer)FOLDKV_INIT(foldkv_layer);
    layers[layer].query_heads = QUERY_HEADS;
    layers[layer].kv_heads = KV_HEADS;
    layers[layer].head_size = HEAD_SIZE;
  }
  options.layer_count = LAYERS;
  options.layers = layers;
  MUST(foldkv_model_create(&options, &model, &error));
  return model;
}

/* Noise, but the last queries all look for one token in the middle. */
static void make_prompt(void) {
  fill_with_noise(queries, PROMPT * QUERY_WIDTH, 1);
  fill_with_noise(keys, PROMPT * KEY_WIDTH, 2);
  fill_with_noise(values, PROMPT * KEY_WIDTH, 3);
  for (int i = 0; i < KEY_WIDTH; ++i) keys[NEEDLE * KEY_WIDTH + i] = 3.0f;
  for (int i = (PROMPT - 32) * QUERY_WIDTH; i < PROMPT * QUERY_WIDTH; ++i) queries[i] += 1.0f;
}

static void feed_tokens(foldkv_runtime* runtime, foldkv_sequence* sequence, int64_t first, int64_t count) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_feed feed = FOLDKV_INIT(foldkv_feed);
  foldkv_step* step = NULL;
  feed.sequence = sequence;
  feed.token_count = count;
  MUST(foldkv_step_begin(runtime, &feed, 1, NULL, &step, &error));
  for (int layer = 0; layer < LAYERS; ++layer) {
    foldkv_attend attend = FOLDKV_INIT(foldkv_attend);
    attend.query = dense(queries + first * QUERY_WIDTH, count, QUERY_HEADS, HEAD_SIZE);
    attend.key = dense(keys + first * KEY_WIDTH, count, KV_HEADS, HEAD_SIZE);
    attend.value = dense(values + first * KEY_WIDTH, count, KV_HEADS, HEAD_SIZE);
    attend.output = dense(output, count, QUERY_HEADS, HEAD_SIZE);
    MUST(foldkv_step_attend(step, layer, &attend, &error));
  }
  MUST(foldkv_step_commit(step, &error));
  foldkv_step_release(step);
}

static foldkv_sequence* make_sequence(foldkv_runtime* runtime, const foldkv_model* model, foldkv_eviction* eviction) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_sequence_options options = FOLDKV_INIT(foldkv_sequence_options);
  foldkv_sequence* sequence = NULL;
  options.eviction = eviction; /* copied */
  MUST(foldkv_sequence_create(runtime, model, NULL, &options, &sequence, &error));
  return sequence;
}

static foldkv_sequence_stats stats_of(const foldkv_sequence* sequence) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_sequence_stats stats = FOLDKV_INIT(foldkv_sequence_stats);
  MUST(foldkv_sequence_get_stats(sequence, &stats, &error));
  return stats;
}

static int is_kept(const foldkv_sequence* sequence, int layer, int head, int64_t position) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  int64_t positions[PROMPT], count = 0;
  MUST(foldkv_sequence_get_kept_positions(sequence, layer, head, positions, PROMPT, &count, &error));
  for (int64_t i = 0; i < count; ++i) {
    if (positions[i] == position) return 1;
  }
  return 0;
}

int main(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_runtime* runtime = make_runtime(64u << 20, 1);
  foldkv_model* model = make_model();
  make_prompt();

  for (int32_t i = 0; i < foldkv_policy_count(); ++i) {
    foldkv_policy_info info = FOLDKV_INIT(foldkv_policy_info);
    MUST(foldkv_policy_get(i, &info, &error));
    printf("%-24s %s\n", info.name, info.description);
  }

  /* SnapKV, but with a budget of our own: the prompt's last 32 queries vote. */
  foldkv_eviction snapkv = FOLDKV_INIT(foldkv_eviction);
  MUST(foldkv_policy_find("snapkv", &snapkv, &error));
  snapkv.budget_tokens = BUDGET;
  foldkv_sequence* full = make_sequence(runtime, model, NULL);
  foldkv_sequence* small = make_sequence(runtime, model, &snapkv);
  feed_tokens(runtime, full, 0, PROMPT);
  feed_tokens(runtime, small, 0, PROMPT);
  printf("%d of %d tokens: %llu instead of %llu bytes\n", BUDGET, PROMPT, (unsigned long long)stats_of(small).bytes,
         (unsigned long long)stats_of(full).bytes);
  CHECK(stats_of(small).held_head_tokens == (int64_t)BUDGET * LAYERS * KV_HEADS);
  CHECK(stats_of(small).bytes * 5 < stats_of(full).bytes);
  for (int layer = 0; layer < LAYERS; ++layer) {
    for (int head = 0; head < KV_HEADS; ++head) CHECK(is_kept(small, layer, head, NEEDLE));
  }

  /* Parts mixed: heavy hitters, heads that share a layer's budget, cut back after every 8 tokens of an endless text. */
  foldkv_eviction mixed = FOLDKV_INIT(foldkv_eviction);
  mixed.scorer = FOLDKV_SCORER_ACCUMULATED;
  mixed.head_allocator = FOLDKV_HEAD_BUDGETS_ADA;
  mixed.sink_tokens = 4;
  mixed.recent_tokens = 16;
  mixed.budget_tokens = BUDGET;
  mixed.interval = 8;
  foldkv_sequence* endless = make_sequence(runtime, model, &mixed);
  uint64_t most = 0;
  for (int token = 0; token < 2000; ++token) {
    feed_tokens(runtime, endless, token % PROMPT, 1);
    if (stats_of(endless).bytes > most) most = stats_of(endless).bytes;
  }
  printf("after %lld tokens never more than %llu bytes\n", (long long)stats_of(endless).tokens, (unsigned long long)most);
  CHECK(stats_of(endless).held_head_tokens < (int64_t)(BUDGET + 8) * LAYERS * KV_HEADS);
  CHECK(most * 3 < stats_of(full).bytes);

  foldkv_sequence_release(full);
  foldkv_sequence_release(small);
  foldkv_sequence_release(endless);
  foldkv_model_release(model);
  foldkv_runtime_release(runtime);
  return 0;
}
