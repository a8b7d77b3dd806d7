/*
 * 1. Hello: a cache that attends.
 *
 * A runtime owns the memory, a model describes the decoder, a sequence is one conversation's cache. Tokens enter by
 * steps: begin, attend for each layer in turn, commit. A prompt and a generated token are both just a step.
 *
 * Here the host has its own queries, keys and values (before rotation) and gets attention outputs back. At the end the
 * program computes the last output by hand and compares.
 */
#include <math.h>

#include "course.h"

enum {
  LAYERS = 2,
  QUERY_HEADS = 4,
  KV_HEADS = 2,
  HEAD_SIZE = 8,
  PROMPT = 6,
  GENERATED = 3,
  TOKENS = PROMPT + GENERATED
};
static const double frequencies[HEAD_SIZE / 2] = {1.0, 0.1, 0.01, 0.001};

static float query[LAYERS][TOKENS][QUERY_HEADS][HEAD_SIZE];
static float key[LAYERS][TOKENS][KV_HEADS][HEAD_SIZE];
static float value[LAYERS][TOKENS][KV_HEADS][HEAD_SIZE];
static float output[LAYERS][TOKENS][QUERY_HEADS][HEAD_SIZE];

static foldkv_model* make_model(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_rotation rotation = FOLDKV_INIT(foldkv_rotation);
  foldkv_layer layers[LAYERS];
  foldkv_model_options options = FOLDKV_INIT(foldkv_model_options);
  foldkv_model* model = NULL;
  rotation.pairing = FOLDKV_PAIRING_HALF_SPLIT; /* number j of a head turns together with number j + HEAD_SIZE / 2 */
  rotation.inverse_frequencies = frequencies;
  rotation.frequency_count = HEAD_SIZE / 2;
  for (int layer = 0; layer < LAYERS; ++layer) {
    layers[layer] = (foldkv_layer)FOLDKV_INIT(foldkv_layer);
    layers[layer].query_heads = QUERY_HEADS;
    layers[layer].kv_heads = KV_HEADS;
    layers[layer].head_size = HEAD_SIZE;
    layers[layer].rotation = &rotation; /* copied, as all that the model is made from */
  }
  options.layer_count = LAYERS;
  options.layers = layers;
  MUST(foldkv_model_create(&options, &model, &error));
  return model;
}

/* Feeds `count` tokens that begin at `first`. */
static void feed_tokens(foldkv_runtime* runtime, foldkv_sequence* sequence, int64_t first, int64_t count) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_feed feed = FOLDKV_INIT(foldkv_feed);
  foldkv_step* step = NULL;
  feed.sequence = sequence;
  feed.token_count = count;
  MUST(foldkv_step_begin(runtime, &feed, 1, NULL, &step, &error)); /* reserves all that the step can need */
  for (int layer = 0; layer < LAYERS; ++layer) {
    foldkv_attend attend = FOLDKV_INIT(foldkv_attend);
    attend.query = dense(&query[layer][first][0][0], count, QUERY_HEADS, HEAD_SIZE);
    attend.key = dense(&key[layer][first][0][0], count, KV_HEADS, HEAD_SIZE);
    attend.value = dense(&value[layer][first][0][0], count, KV_HEADS, HEAD_SIZE);
    attend.output = dense(&output[layer][first][0][0], count, QUERY_HEADS, HEAD_SIZE);
    MUST(foldkv_step_attend(step, layer, &attend, &error));
  }
  MUST(foldkv_step_commit(step, &error));
  foldkv_step_release(step);
}

/* Number i of a head turned to its position. */
static double turned(const float* head, int i, int64_t position) {
  const int half = HEAD_SIZE / 2, pair = i % half;
  const double angle = (double)position * frequencies[pair], x = head[pair], y = head[pair + half];
  return i < half ? x * cos(angle) - y * sin(angle) : x * sin(angle) + y * cos(angle);
}

/* What attention of one query head at the last position must give, straight from the definition. */
static void attend_by_hand(int layer, int query_head, float* result) {
  const int kv_head = query_head / (QUERY_HEADS / KV_HEADS);
  double weights[TOKENS], sum = 0.0;
  for (int token = 0; token < TOKENS; ++token) {
    double score = 0.0;
    for (int i = 0; i < HEAD_SIZE; ++i) {
      score +=
          turned(query[layer][TOKENS - 1][query_head], i, TOKENS - 1) * turned(key[layer][token][kv_head], i, token);
    }
    weights[token] = exp(score / sqrt((double)HEAD_SIZE));
    sum += weights[token];
  }
  for (int i = 0; i < HEAD_SIZE; ++i) {
    double mean = 0.0;
    for (int token = 0; token < TOKENS; ++token) mean += weights[token] / sum * value[layer][token][kv_head][i];
    result[i] = (float)mean;
  }
}

int main(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  printf("%s\n", foldkv_build_info());
  for (int32_t index = 0; index < foldkv_backend_count(); ++index) {
    foldkv_backend_info info = FOLDKV_INIT(foldkv_backend_info);
    MUST(foldkv_backend_get(index, &info, &error));
    printf("backend %s, %s: %s\n", info.name, info.instruction_set, info.description);
  }

  foldkv_runtime_options runtime_options = FOLDKV_INIT(foldkv_runtime_options);
  runtime_options.budget_bytes = 16u << 20; /* all that caches of this runtime may ever use */
  foldkv_runtime* runtime = NULL;
  MUST(foldkv_runtime_create(&runtime_options, &runtime, &error));
  foldkv_model* model = make_model();
  foldkv_sequence* sequence = NULL;
  MUST(foldkv_sequence_create(runtime, model, NULL, NULL, &sequence, &error)); /* no profile: all stays exact */

  fill_with_noise(&query[0][0][0][0], sizeof query / sizeof(float), 1);
  fill_with_noise(&key[0][0][0][0], sizeof key / sizeof(float), 2);
  fill_with_noise(&value[0][0][0][0], sizeof value / sizeof(float), 3);
  feed_tokens(runtime, sequence, 0, PROMPT);
  for (int64_t token = PROMPT; token < TOKENS; ++token) feed_tokens(runtime, sequence, token, 1);

  foldkv_sequence_stats stats = FOLDKV_INIT(foldkv_sequence_stats);
  MUST(foldkv_sequence_get_stats(sequence, &stats, &error));
  printf("%lld tokens, %llu bytes each in 16 bit, %llu bytes held\n", (long long)stats.tokens,
         (unsigned long long)stats.full_token_bytes, (unsigned long long)stats.bytes);
  CHECK(stats.tokens == TOKENS && stats.next_position == TOKENS);
  CHECK(stats.full_token_bytes == LAYERS * 2 * KV_HEADS * HEAD_SIZE * 2);

  for (int layer = 0; layer < LAYERS; ++layer) {
    for (int head = 0; head < QUERY_HEADS; ++head) {
      float expected[HEAD_SIZE];
      attend_by_hand(layer, head, expected);
      CHECK(relative_distance(output[layer][TOKENS - 1][head], expected, HEAD_SIZE) < 2e-3f); /* keys are f16 */
    }
  }
  printf("the last token's attention is what the definition gives\n");

  /* In any order: each object keeps alive what it was made from. */
  foldkv_runtime_release(runtime);
  foldkv_model_release(model);
  foldkv_sequence_release(sequence);
  return 0;
}
