/*
 * What samples 7 to 9 share: a language model of 48 words that is noise, and yet always the same. A word's queries, keys and
 * values come from tables; the next word's logits are what the last layer answers, times a table.
 */
#ifndef FOLDKV_SAMPLES_TOY_MODEL_H_
#define FOLDKV_SAMPLES_TOY_MODEL_H_

#include <math.h>

#include "course.h"

enum { LAYERS = 2, QUERY_HEADS = 4, KV_HEADS = 2, HEAD_SIZE = 16, WORDS = 48, MOST_ROWS = 512 };
enum { QUERY_WIDTH = QUERY_HEADS * HEAD_SIZE, KEY_WIDTH = KV_HEADS * HEAD_SIZE };

static float word_queries[LAYERS][WORDS][QUERY_WIDTH], word_keys[LAYERS][WORDS][KEY_WIDTH];
static float word_values[LAYERS][WORDS][KEY_WIDTH], word_logits[WORDS][QUERY_WIDTH];

static inline foldkv_model* make_toy_model(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  static double frequencies[HEAD_SIZE / 2];
  foldkv_rotation rotation = FOLDKV_INIT(foldkv_rotation);
  foldkv_layer layers[LAYERS];
  foldkv_model_options options = FOLDKV_INIT(foldkv_model_options);
  foldkv_model* model = NULL;
  for (int pair = 0; pair < HEAD_SIZE / 2; ++pair) frequencies[pair] = pow(10000.0, -2.0 * pair / HEAD_SIZE);
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
  options.name = "48 words of noise";
  MUST(foldkv_model_create(&options, &model, &error));
  fill_with_noise(&word_queries[0][0][0], LAYERS * WORDS * QUERY_WIDTH, 1);
  fill_with_noise(&word_keys[0][0][0], LAYERS * WORDS * KEY_WIDTH, 2);
  fill_with_noise(&word_values[0][0][0], LAYERS * WORDS * KEY_WIDTH, 3);
  fill_with_noise(&word_logits[0][0], WORDS * QUERY_WIDTH, 4);
  return model;
}

/* Feeds counts[i] words to sequences[i], all in one step; words and logits [rows][WORDS] of one sequence after the other. */
static inline void feed_words(foldkv_runtime* runtime, foldkv_sequence* const* sequences, const int* counts, int sequence_count,
                       const int* words, float (*logits)[WORDS]) {
  static float queries[MOST_ROWS][QUERY_WIDTH], keys[MOST_ROWS][KEY_WIDTH], values[MOST_ROWS][KEY_WIDTH];
  static float output[MOST_ROWS][QUERY_WIDTH];
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_feed feeds[64];
  foldkv_step* step = NULL;
  int rows = 0;
  for (int i = 0; i < sequence_count; ++i) {
    feeds[i] = (foldkv_feed)FOLDKV_INIT(foldkv_feed);
    feeds[i].sequence = sequences[i];
    feeds[i].token_count = counts[i];
    rows += counts[i];
  }
  CHECK(sequence_count <= 64 && rows <= MOST_ROWS);
  MUST(foldkv_step_begin(runtime, feeds, sequence_count, NULL, &step, &error));
  for (int layer = 0; layer < LAYERS; ++layer) {
    foldkv_attend attend = FOLDKV_INIT(foldkv_attend);
    for (int row = 0; row < rows; ++row) {
      memcpy(queries[row], word_queries[layer][words[row]], sizeof(queries[row]));
      memcpy(keys[row], word_keys[layer][words[row]], sizeof(keys[row]));
      memcpy(values[row], word_values[layer][words[row]], sizeof(values[row]));
    }
    attend.query = dense(queries[0], rows, QUERY_HEADS, HEAD_SIZE);
    attend.key = dense(keys[0], rows, KV_HEADS, HEAD_SIZE);
    attend.value = dense(values[0], rows, KV_HEADS, HEAD_SIZE);
    attend.output = dense(output[0], rows, QUERY_HEADS, HEAD_SIZE);
    MUST(foldkv_step_attend(step, layer, &attend, &error));
  }
  MUST(foldkv_step_commit(step, &error));
  foldkv_step_release(step);
  for (int row = 0; row < rows; ++row) {
    for (int word = 0; word < WORDS; ++word) {
      logits[row][word] = 0.0f;
      for (int i = 0; i < QUERY_WIDTH; ++i) logits[row][word] += output[row][i] * word_logits[word][i];
    }
  }
}

static inline int best_word(const float* logits) {
  int best = 0;
  for (int word = 1; word < WORDS; ++word) {
    if (logits[word] > logits[best]) best = word;
  }
  return best;
}

static inline foldkv_sequence_stats stats_of(const foldkv_sequence* sequence) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_sequence_stats stats = FOLDKV_INIT(foldkv_sequence_stats);
  MUST(foldkv_sequence_get_stats(sequence, &stats, &error));
  return stats;
}

static inline uint64_t used_bytes(const foldkv_runtime* runtime) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_runtime_stats stats = FOLDKV_INIT(foldkv_runtime_stats);
  MUST(foldkv_runtime_get_stats(runtime, &stats, &error));
  return stats.used_bytes;
}

#endif
