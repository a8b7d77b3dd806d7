/*
 * 3. Calibration: a profile makes a cache small.
 *
 * A calibrator watches keys and values of sample text and finds, for each group of layers, the few directions in which
 * they vary. What it learned is a profile: bytes to save beside the model. A sequence made with a profile stores one
 * short, quantized latent for a whole group of layers; the first tokens (sinks) and the latest ones stay exact.
 *
 * The "model" here invents keys and values that live in 24 of 128 dimensions, as real ones nearly do.
 */
#include "course.h"

enum { LAYERS = 4, KV_HEADS = 2, HEAD_SIZE = 16, P = KV_HEADS * HEAD_SIZE, CAUSES = 24, SAMPLE = 512, PROMPT = 300 };

static float mixing[2][LAYERS][P][CAUSES], means[2][LAYERS][P];
static float keys[LAYERS][SAMPLE][P], values[LAYERS][SAMPLE][P];

/* Keys and values of `count` tokens of a "text": every layer sees the same causes, mixed in its own way. */
static void invent_text(int64_t count, uint64_t text) {
  for (int64_t token = 0; token < count; ++token) {
    float causes[2][CAUSES];
    for (int i = 0; i < 2 * CAUSES; ++i) causes[i / CAUSES][i % CAUSES] = noise(&text);
    for (int layer = 0; layer < LAYERS; ++layer) {
      for (int i = 0; i < P; ++i) {
        float key = means[0][layer][i] + 0.01f * noise(&text), value = means[1][layer][i] + 0.01f * noise(&text);
        for (int c = 0; c < CAUSES; ++c) key += mixing[0][layer][i][c] * causes[0][c];
        for (int c = 0; c < CAUSES; ++c) value += mixing[1][layer][i][c] * causes[1][c];
        keys[layer][token][i] = key;
        values[layer][token][i] = value;
      }
    }
  }
}

static foldkv_model* make_model(void) { /* of layers without rotation, to keep it short */
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_layer layers[LAYERS];
  foldkv_model_options options = FOLDKV_INIT(foldkv_model_options);
  foldkv_model* model = NULL;
  for (int layer = 0; layer < LAYERS; ++layer) {
    layers[layer] = (foldkv_layer)FOLDKV_INIT(foldkv_layer);
    layers[layer].query_heads = layers[layer].kv_heads = KV_HEADS;
    layers[layer].head_size = HEAD_SIZE;
  }
  options.layer_count = LAYERS;
  options.layers = layers;
  options.name = "invented"; /* names the weights: the profile will fit no other model */
  MUST(foldkv_model_create(&options, &model, &error));
  return model;
}

/* Watches one sample text, solves, and gives the profile's file. */
static size_t calibrate(foldkv_runtime* runtime, const foldkv_model* model, unsigned char* file, size_t capacity) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_tensor layer_keys[LAYERS], layer_values[LAYERS];
  foldkv_solve_options solve = FOLDKV_INIT(foldkv_solve_options);
  foldkv_calibrator* calibrator = NULL;
  foldkv_profile* profile = NULL;
  size_t size = 0;
  MUST(foldkv_calibrator_create(runtime, model, NULL, &calibrator, &error)); /* groups of 4 adjacent layers */
  invent_text(SAMPLE, 1);
  for (int layer = 0; layer < LAYERS; ++layer) {
    layer_keys[layer] = dense(&keys[layer][0][0], SAMPLE, KV_HEADS, HEAD_SIZE);
    layer_values[layer] = dense(&values[layer][0][0], SAMPLE, KV_HEADS, HEAD_SIZE);
  }
  MUST(foldkv_calibrator_observe(calibrator, layer_keys, layer_values, LAYERS, 0, &error));
  solve.bits = 8;
  MUST(foldkv_calibrator_solve(calibrator, &solve, &profile, &error));
  MUST(foldkv_profile_save(profile, file, capacity, &size, &error));
  foldkv_profile_release(profile);
  foldkv_calibrator_release(calibrator);
  return size;
}

static void inspect(const foldkv_profile* profile) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_group_info group = FOLDKV_INIT(foldkv_group_info);
  double variances[LAYERS * P], kept = 0.0, all = 0.0;
  MUST(foldkv_profile_get_group(profile, 0, 0, &group, &error));
  MUST(foldkv_profile_get_variances(profile, 0, FOLDKV_KEYS, variances, LAYERS * P, &error));
  for (int i = 0; i < LAYERS * P; ++i) {
    all += variances[i];
    if (i < group.key_latent_width) kept += variances[i];
  }
  printf("one group of %d layers: %d of %d key directions hold %.3f%% of the variance\n", group.layer_count,
         group.key_latent_width, group.layer_count * group.key_width, 100.0 * kept / all);
  CHECK(group.layer_count == LAYERS && group.key_latent_width == P);
  CHECK(kept / all > 0.999);
}

int main(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  fill_with_noise(&mixing[0][0][0][0], sizeof mixing / sizeof(float), 10);
  fill_with_noise(&means[0][0][0], sizeof means / sizeof(float), 11);
  foldkv_runtime* runtime = make_runtime(16u << 20, 0);
  foldkv_model* model = make_model();

  static unsigned char file[1 << 20];
  const size_t size = calibrate(runtime, model, file, sizeof file);
  printf("the profile is a file of %zu bytes\n", size);
  foldkv_profile* profile = NULL;
  file[size / 2] ^= 1; /* whatever happens to the file on its way is noticed */
  CHECK(foldkv_profile_load(file, size, &profile, NULL) == FOLDKV_E_CORRUPT);
  file[size / 2] ^= 1;
  MUST(foldkv_profile_load(file, size, &profile, &error));
  inspect(profile);

  foldkv_sequence* sequence = NULL;
  MUST(foldkv_sequence_create(runtime, model, profile, NULL, &sequence, &error));
  invent_text(PROMPT, 2); /* not the text of the calibration */
  foldkv_feed feed = FOLDKV_INIT(foldkv_feed);
  feed.sequence = sequence;
  feed.token_count = PROMPT;
  foldkv_step* step = NULL;
  static float query[PROMPT][P], output[PROMPT][P], rebuilt[PROMPT][P];
  MUST(foldkv_step_begin(runtime, &feed, 1, NULL, &step, &error));
  for (int layer = 0; layer < LAYERS; ++layer) {
    foldkv_attend attend = FOLDKV_INIT(foldkv_attend);
    attend.query = dense(&query[0][0], PROMPT, KV_HEADS, HEAD_SIZE);
    attend.key = dense(&keys[layer][0][0], PROMPT, KV_HEADS, HEAD_SIZE);
    attend.value = dense(&values[layer][0][0], PROMPT, KV_HEADS, HEAD_SIZE);
    attend.output = dense(&output[0][0], PROMPT, KV_HEADS, HEAD_SIZE);
    MUST(foldkv_step_attend(step, layer, &attend, &error));
  }
  MUST(foldkv_step_commit(step, &error)); /* the prompt ends here: its middle is compressed */
  foldkv_step_release(step);

  foldkv_sequence_stats stats = FOLDKV_INIT(foldkv_sequence_stats);
  MUST(foldkv_sequence_get_stats(sequence, &stats, &error));
  printf("%lld tokens as latents of %llu bytes instead of %llu, %lld exact\n", (long long)stats.latent_tokens,
         (unsigned long long)stats.latent_token_bytes, (unsigned long long)stats.grouped_token_bytes,
         (long long)stats.exact_tokens);
  CHECK(stats.latent_tokens == PROMPT - 4 - 64 && stats.latent_token_bytes * 7 < stats.grouped_token_bytes);

  for (int layer = 0; layer < LAYERS; ++layer) {
    foldkv_rebuild_options rebuild = FOLDKV_INIT(foldkv_rebuild_options);
    const foldkv_tensor view = dense(&rebuilt[0][0], PROMPT, KV_HEADS, HEAD_SIZE);
    rebuild.layer = layer;
    MUST(foldkv_sequence_rebuild(sequence, &rebuild, &view, &error));
    const float distance = relative_distance(&rebuilt[0][0], &keys[layer][0][0], PROMPT * P);
    printf("layer %d: rebuilt keys are off by at most %.2f%% of the largest\n", layer, 100.0 * (double)distance);
    CHECK(distance < 0.03f);
  }
  foldkv_sequence_release(sequence);
  foldkv_profile_release(profile);
  foldkv_model_release(model);
  foldkv_runtime_release(runtime);
  return 0;
}
