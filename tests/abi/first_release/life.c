/*
 * A host that was built when the first release came out, and meets the library of today: it is compiled against the
 * header of that release (foldkv/foldkv.h beside this file) and linked with the present shared library. One small life
 * of a cache, in which every answer is checked against plain attention from the definition.
 *
 * It is never adapted to a newer library. What it does must go on working while FOLDKV_ABI_VERSION stays.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foldkv/foldkv.h"

enum { LAYERS = 2, QUERY_HEADS = 4, KV_HEADS = 2, HEAD_SIZE = 8, PROMPT = 200, TOKENS = PROMPT + 4 };

typedef float query_row[QUERY_HEADS][HEAD_SIZE];
typedef float kv_row[KV_HEADS][HEAD_SIZE];

static const double frequencies[HEAD_SIZE / 2] = {1.0, 0.1, 0.01, 0.001};
static query_row query[LAYERS][TOKENS], output[LAYERS][TOKENS], other_output[LAYERS][TOKENS];
static kv_row key[LAYERS][TOKENS], value[LAYERS][TOKENS];
static kv_row held_key[TOKENS], held_value[TOKENS];

#define MUST(call) must((call), &error, #call)
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

static void must(foldkv_status status, const foldkv_error* error, const char* call) {
  if (status == FOLDKV_OK) return;
  fprintf(stderr, "%s\n  %s, argument '%s': %s\n", call, foldkv_status_name(status), error->argument, error->message);
  exit(1);
}

static void check(int holds, const char* condition, int line) {
  if (holds) return;
  fprintf(stderr, "life.c:%d: this should hold: %s\n", line, condition);
  exit(1);
}

static void fill(float* numbers, size_t count, uint32_t state) {
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    numbers[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
  }
}

static foldkv_tensor dense(void* data, int64_t rows, int64_t heads) {
  foldkv_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.dtype = FOLDKV_F32;
  tensor.rank = 3;
  tensor.shape[0] = rows;
  tensor.shape[1] = heads;
  tensor.shape[2] = HEAD_SIZE;
  return tensor;
}

static foldkv_runtime* make_runtime(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_runtime_options options = FOLDKV_INIT(foldkv_runtime_options);
  foldkv_runtime* runtime = NULL;
  CHECK(foldkv_runtime_create(&options, &runtime, &error) == FOLDKV_E_ARGUMENT); /* a budget is required */
  CHECK(error.status == FOLDKV_E_ARGUMENT && error.message[0] != '\0' && runtime == NULL);
  CHECK(strstr(error.argument, "budget_bytes") != NULL);
  options.budget_bytes = 32u << 20;
  options.threads = 2;
  MUST(foldkv_runtime_create(&options, &runtime, &error));
  return runtime;
}

static foldkv_model* make_model(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_rotation rotation = FOLDKV_INIT(foldkv_rotation);
  foldkv_layer layers[LAYERS];
  foldkv_model_options options = FOLDKV_INIT(foldkv_model_options);
  foldkv_model* model = NULL;
  rotation.pairing = FOLDKV_PAIRING_HALF_SPLIT;
  rotation.inverse_frequencies = frequencies;
  rotation.frequency_count = HEAD_SIZE / 2;
  for (int layer = 0; layer < LAYERS; ++layer) {
    layers[layer] = (foldkv_layer)FOLDKV_INIT(foldkv_layer);
    layers[layer].query_heads = QUERY_HEADS;
    layers[layer].kv_heads = KV_HEADS;
    layers[layer].head_size = HEAD_SIZE;
    layers[layer].rotation = &rotation;
  }
  options.layer_count = LAYERS;
  options.layers = layers;
  MUST(foldkv_model_create(&options, &model, &error));
  return model;
}

static foldkv_profile* make_profile(const foldkv_model* model) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_codec_options options = FOLDKV_INIT(foldkv_codec_options);
  foldkv_profile_info info = FOLDKV_INIT(foldkv_profile_info);
  foldkv_group_info group = FOLDKV_INIT(foldkv_group_info);
  foldkv_profile* profile = NULL;
  options.codec = FOLDKV_CODEC_INTEGER;
  MUST(foldkv_profile_from_codec(model, &options, &profile, &error));
  MUST(foldkv_profile_check(profile, model, &error));
  MUST(foldkv_profile_get_info(profile, &info, &error));
  CHECK(info.layer_count == LAYERS && info.plan_count == 1 && info.group_count >= 1);
  MUST(foldkv_profile_get_group(profile, 0, 0, &group, &error));
  CHECK(group.key_width == KV_HEADS * HEAD_SIZE && group.kind == FOLDKV_GROUP_ROWS);
  return profile;
}

/* One step with the tokens [first, first + count). */
static void feed_tokens(foldkv_runtime* runtime, foldkv_sequence* sequence, int64_t first, int64_t count,
                        query_row results[LAYERS][TOKENS]) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_feed feed = FOLDKV_INIT(foldkv_feed);
  foldkv_step* step = NULL;
  feed.sequence = sequence;
  feed.token_count = count;
  MUST(foldkv_step_begin(runtime, &feed, 1, NULL, &step, &error));
  for (int layer = 0; layer < LAYERS; ++layer) {
    foldkv_attend attend = FOLDKV_INIT(foldkv_attend);
    attend.query = dense(query[layer][first], count, QUERY_HEADS);
    attend.key = dense(key[layer][first], count, KV_HEADS);
    attend.value = dense(value[layer][first], count, KV_HEADS);
    attend.output = dense(results[layer][first], count, QUERY_HEADS);
    MUST(foldkv_step_attend(step, layer, &attend, &error));
  }
  MUST(foldkv_step_commit(step, &error));
  foldkv_step_release(step);
}

static void turn(const float* head, int64_t position, float* turned) {
  const int half = HEAD_SIZE / 2;
  for (int pair = 0; pair < half; ++pair) {
    const double angle = (double)position * frequencies[pair], x = head[pair], y = head[pair + half];
    turned[pair] = (float)(x * cos(angle) - y * sin(angle));
    turned[pair + half] = (float)(x * sin(angle) + y * cos(angle));
  }
}

/* Attention of one query head of the token at the last of `count` positions over turned keys and values. */
static void attend_by_hand(const float* query_head, int kv_head, int64_t count, float* result) {
  double weights[TOKENS], sum = 0.0;
  float turned_query[HEAD_SIZE];
  turn(query_head, count - 1, turned_query);
  for (int64_t token = 0; token < count; ++token) {
    double score = 0.0;
    for (int i = 0; i < HEAD_SIZE; ++i) score += (double)turned_query[i] * held_key[token][kv_head][i];
    weights[token] = exp(score / sqrt((double)HEAD_SIZE));
    sum += weights[token];
  }
  for (int i = 0; i < HEAD_SIZE; ++i) {
    double mean = 0.0;
    for (int64_t token = 0; token < count; ++token) mean += weights[token] / sum * held_value[token][kv_head][i];
    result[i] = (float)mean;
  }
}

/* The largest error of the newest token's output in one layer, against held_key and held_value. */
static double output_error(int layer, int64_t count, query_row results[LAYERS][TOKENS]) {
  double largest = 0.0;
  for (int head = 0; head < QUERY_HEADS; ++head) {
    float expected[HEAD_SIZE];
    attend_by_hand(query[layer][count - 1][head], head / (QUERY_HEADS / KV_HEADS), count, expected);
    for (int i = 0; i < HEAD_SIZE; ++i) {
      const double error = fabs((double)results[layer][count - 1][head][i] - expected[i]);
      if (!(error <= largest)) largest = error;
    }
  }
  return largest;
}

/* What was fed, as held_key and held_value. */
static void hold_fed(int layer, int64_t count) {
  for (int64_t token = 0; token < count; ++token) {
    for (int head = 0; head < KV_HEADS; ++head) turn(key[layer][token][head], token, held_key[token][head]);
  }
  memcpy(held_value, value[layer], (size_t)count * sizeof(kv_row));
}

/* What the sequence says that it holds, as held_key and held_value. */
static void hold_rebuilt(const foldkv_sequence* sequence, int layer, int64_t count) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_rebuild_options options = FOLDKV_INIT(foldkv_rebuild_options);
  foldkv_tensor rows = dense(held_key, count, KV_HEADS);
  options.layer = layer;
  options.side = FOLDKV_KEYS;
  options.rotated = 1;
  MUST(foldkv_sequence_rebuild(sequence, &options, &rows, &error));
  rows.data = held_value;
  options.side = FOLDKV_VALUES;
  MUST(foldkv_sequence_rebuild(sequence, &options, &rows, &error));
}

static foldkv_sequence_stats stats_of(const foldkv_sequence* sequence) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_sequence_stats stats = FOLDKV_INIT(foldkv_sequence_stats);
  MUST(foldkv_sequence_get_stats(sequence, &stats, &error));
  return stats;
}

static uint64_t bytes_of(const foldkv_ledger* ledger) {
  return ledger->exact + ledger->latent + ledger->correction + ledger->mean + ledger->positions + ledger->profile +
         ledger->model + ledger->scratch;
}

static void check_runtime_holds(const foldkv_runtime* runtime, int64_t sequences) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_runtime_stats stats = FOLDKV_INIT(foldkv_runtime_stats);
  MUST(foldkv_runtime_get_stats(runtime, &stats, &error));
  CHECK(stats.sequence_count == sequences && stats.threads == 2 && stats.budget_bytes == 32u << 20);
  CHECK(stats.used_bytes == bytes_of(&stats.ledger) && stats.used_bytes <= stats.peak_bytes);
  CHECK((stats.ledger.exact > 0) == (sequences > 0));
}

static void exact_life(foldkv_runtime* runtime, const foldkv_model* model) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_sequence_options options = FOLDKV_INIT(foldkv_sequence_options);
  foldkv_sequence* sequence = NULL;
  options.dtype = FOLDKV_F32;
  MUST(foldkv_sequence_create(runtime, model, NULL, &options, &sequence, &error));
  feed_tokens(runtime, sequence, 0, PROMPT, output);
  for (int64_t token = PROMPT; token < TOKENS; ++token) feed_tokens(runtime, sequence, token, 1, output);
  const foldkv_sequence_stats stats = stats_of(sequence);
  CHECK(stats.tokens == TOKENS && stats.next_position == TOKENS && stats.exact_layers == LAYERS);
  for (int layer = 0; layer < LAYERS; ++layer) {
    hold_fed(layer, TOKENS);
    CHECK(output_error(layer, TOKENS, output) < 1e-5);
  }
  foldkv_sequence_release(sequence);
}

/* A prompt that stays exact until it is compressed by a call; then the original and its fork read the same next token,
 * and the original goes on alone. */
static void compressed_life(foldkv_runtime* runtime, const foldkv_model* model, const foldkv_profile* profile) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_sequence *sequence = NULL, *fork = NULL;
  MUST(foldkv_sequence_create(runtime, model, profile, NULL, &sequence, &error));
  feed_tokens(runtime, sequence, 0, PROMPT, output);
  MUST(foldkv_sequence_compress(sequence, &error));
  foldkv_sequence_stats stats = stats_of(sequence);
  CHECK(stats.tokens == PROMPT && stats.exact_tokens == 4 + 64 && stats.latent_tokens == PROMPT - 4 - 64);
  CHECK(stats.latent_token_bytes < stats.full_token_bytes && stats.bytes == bytes_of(&stats.ledger));

  MUST(foldkv_sequence_fork(sequence, &fork, &error));
  check_runtime_holds(runtime, 2);
  feed_tokens(runtime, sequence, PROMPT, 1, output);
  CHECK(stats_of(fork).tokens == PROMPT);
  feed_tokens(runtime, fork, PROMPT, 1, other_output);
  for (int layer = 0; layer < LAYERS; ++layer) {
    CHECK(memcmp(output[layer][PROMPT], other_output[layer][PROMPT], sizeof(query_row)) == 0);
    hold_rebuilt(sequence, layer, PROMPT + 1);
    CHECK(output_error(layer, PROMPT + 1, output) < 1e-3); /* attention over what is said to be held */
    hold_fed(layer, PROMPT + 1);
    CHECK(output_error(layer, PROMPT + 1, output) < 2e-2); /* eight bits are near what was fed */
  }

  foldkv_sequence_release(fork);
  feed_tokens(runtime, sequence, PROMPT + 1, 1, output);
  int64_t positions[TOKENS], count = 0;
  MUST(foldkv_sequence_get_positions(sequence, positions, TOKENS, &count, &error));
  CHECK(count == PROMPT + 2 && positions[0] == 0 && positions[PROMPT + 1] == PROMPT + 1);
  foldkv_sequence_release(sequence);
}

int main(void) {
  printf("compiled against foldkv %d.%d.%d, running with %s\n", FOLDKV_VERSION_MAJOR, FOLDKV_VERSION_MINOR,
         FOLDKV_VERSION_PATCH, foldkv_version());
  CHECK(foldkv_abi_version() == FOLDKV_ABI_VERSION);
  fill(&query[0][0][0][0], sizeof query / sizeof(float), 1);
  fill(&key[0][0][0][0], sizeof key / sizeof(float), 2);
  fill(&value[0][0][0][0], sizeof value / sizeof(float), 3);
  foldkv_runtime* runtime = make_runtime();
  foldkv_model* model = make_model();
  foldkv_profile* profile = make_profile(model);
  exact_life(runtime, model);
  compressed_life(runtime, model, profile);
  check_runtime_holds(runtime, 0);
  foldkv_profile_release(profile);
  foldkv_model_release(model);
  foldkv_runtime_release(runtime);
  return 0;
}
