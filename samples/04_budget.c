/*
 * 4. The budget: known before, never exceeded.
 *
 * The estimate runs the allocation code itself, so what it says is what a run then uses, to the byte. A step that does
 * not fit is refused as a whole: nothing has changed, and the conversation goes on as soon as there is room.
 */
#include "course.h"

enum { LAYERS = 2, KV_HEADS = 2, HEAD_SIZE = 32, PROMPT = 200, GENERATED = 20, CHUNK = 64 };

static float numbers[4096 * KV_HEADS * HEAD_SIZE], output[4096 * KV_HEADS * HEAD_SIZE];

static foldkv_model* make_model(void) {
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
  MUST(foldkv_model_create(&options, &model, &error));
  return model;
}

/* Feeds `count` tokens, or says why not. */
static foldkv_status feed_tokens(foldkv_runtime* runtime, foldkv_sequence* sequence, int64_t count, foldkv_error* why) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_feed feed = FOLDKV_INIT(foldkv_feed);
  foldkv_step* step = NULL;
  feed.sequence = sequence;
  feed.token_count = count;
  const foldkv_status status = foldkv_step_begin(runtime, &feed, 1, NULL, &step, why);
  if (status != FOLDKV_OK) return status;
  for (int layer = 0; layer < LAYERS; ++layer) {
    foldkv_attend attend = FOLDKV_INIT(foldkv_attend);
    attend.query = attend.key = attend.value = dense(numbers, count, KV_HEADS, HEAD_SIZE);
    attend.output = dense(output, count, KV_HEADS, HEAD_SIZE);
    MUST(foldkv_step_attend(step, layer, &attend, &error)); /* begin has reserved: it cannot run out of memory */
  }
  MUST(foldkv_step_commit(step, &error));
  foldkv_step_release(step);
  return FOLDKV_OK;
}

static foldkv_runtime_stats runtime_stats(const foldkv_runtime* runtime) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_runtime_stats stats = FOLDKV_INIT(foldkv_runtime_stats);
  MUST(foldkv_runtime_get_stats(runtime, &stats, &error));
  return stats;
}

static foldkv_sequence_stats sequence_stats(const foldkv_sequence* sequence) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_sequence_stats stats = FOLDKV_INIT(foldkv_sequence_stats);
  MUST(foldkv_sequence_get_stats(sequence, &stats, &error));
  return stats;
}

/* Said before, used afterwards. */
static uint64_t estimate_and_run(const foldkv_model* model) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_runtime* runtime = make_runtime(64u << 20, 1);
  foldkv_sequence* sequence = NULL;
  foldkv_estimate estimate = FOLDKV_INIT(foldkv_estimate);
  MUST(foldkv_sequence_estimate(runtime, model, NULL, NULL, NULL, PROMPT, GENERATED, &estimate, &error));
  MUST(foldkv_sequence_create(runtime, model, NULL, NULL, &sequence, &error));
  MUST(feed_tokens(runtime, sequence, PROMPT, &error));
  for (int i = 0; i < GENERATED; ++i) MUST(feed_tokens(runtime, sequence, 1, &error));

  const uint64_t held = sequence_stats(sequence).bytes, peak = runtime_stats(runtime).peak_bytes;
  printf("held:    estimated %llu, used %llu bytes\n", (unsigned long long)estimate.sequence_bytes,
         (unsigned long long)held);
  printf("at peak: estimated %llu, used %llu bytes\n",
         (unsigned long long)(estimate.peak_bytes + estimate.shared_bytes), (unsigned long long)peak);
  CHECK(estimate.sequence_bytes == held);
  CHECK(estimate.peak_bytes + estimate.shared_bytes == peak);
  foldkv_sequence_release(sequence);
  CHECK(runtime_stats(runtime).used_bytes == 0);
  foldkv_runtime_release(runtime);
  return peak;
}

int main(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_error why = FOLDKV_INIT(foldkv_error);
  fill_with_noise(numbers, sizeof numbers / sizeof(float), 1);
  foldkv_model* model = make_model();
  const uint64_t budget = estimate_and_run(model) * 2;

  /* Two conversations share one budget. The first one grows until a step is refused. */
  foldkv_runtime* runtime = make_runtime(budget, 1);
  foldkv_sequence *greedy = NULL, *modest = NULL;
  MUST(foldkv_sequence_create(runtime, model, NULL, NULL, &greedy, &error));
  MUST(foldkv_sequence_create(runtime, model, NULL, NULL, &modest, &error));
  MUST(feed_tokens(runtime, modest, CHUNK, &error));
  int steps = 0;
  foldkv_status status = FOLDKV_OK;
  while (steps < 1000 && (status = feed_tokens(runtime, greedy, CHUNK, &why)) == FOLDKV_OK) ++steps;
  printf("after %d steps: %s\n", steps, why.message);
  CHECK(status == FOLDKV_E_BUDGET && steps > 0);

  /* Nothing has changed by the refusal, and the limit was kept. */
  CHECK(sequence_stats(greedy).tokens == (int64_t)steps * CHUNK);
  CHECK(runtime_stats(runtime).peak_bytes <= budget);
  const uint64_t used = runtime_stats(runtime).used_bytes;
  CHECK(feed_tokens(runtime, greedy, CHUNK, &why) == FOLDKV_E_BUDGET && runtime_stats(runtime).used_bytes == used);

  /* The first one makes room; the second goes on and gives what it would have given anyway. */
  foldkv_sequence_release(greedy);
  MUST(feed_tokens(runtime, modest, CHUNK, &error));
  printf("with room again: %lld tokens\n", (long long)sequence_stats(modest).tokens);
  CHECK(sequence_stats(modest).tokens == 2 * CHUNK);

  foldkv_sequence_release(modest);
  foldkv_model_release(model);
  foldkv_runtime_release(runtime);
  return 0;
}
