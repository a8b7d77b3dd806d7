/* A host in C: makes a runtime, feeds two tokens through one layer, and checks the answer. */
#include <foldkv/foldkv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TRY(call)                                                                              \
  do {                                                                                         \
    if ((call) != FOLDKV_OK) {                                                                 \
      fprintf(stderr, "%s: %s: %s\n", #call, foldkv_status_name(error.status), error.message); \
      return 1;                                                                                \
    }                                                                                          \
  } while (0)

static foldkv_tensor tensor(float* data, int64_t tokens) {
  foldkv_tensor view;
  memset(&view, 0, sizeof view);
  view.data = data;
  view.dtype = FOLDKV_F32;
  view.rank = 3;
  view.shape[0] = tokens;
  view.shape[1] = 1;
  view.shape[2] = 2;
  return view;
}

int main(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_runtime_options runtime_options = FOLDKV_INIT(foldkv_runtime_options);
  foldkv_layer layer = FOLDKV_INIT(foldkv_layer);
  foldkv_model_options model_options = FOLDKV_INIT(foldkv_model_options);
  foldkv_feed feed = FOLDKV_INIT(foldkv_feed);
  foldkv_attend attend = FOLDKV_INIT(foldkv_attend);
  foldkv_runtime* runtime = NULL;
  foldkv_model* model = NULL;
  foldkv_sequence* sequence = NULL;
  foldkv_step* step = NULL;
  float query[4] = {0, 0, 0, 0}, key[4] = {1, 2, 3, 4}, value[4] = {1, 2, 3, 6}, output[4];

  if (foldkv_abi_version() != FOLDKV_ABI_VERSION) return 1;

  runtime_options.budget_bytes = 8u << 20;
  runtime_options.threads = 1;
  TRY(foldkv_runtime_create(&runtime_options, &runtime, &error));

  layer.query_heads = layer.kv_heads = 1;
  layer.head_size = 2;
  model_options.layer_count = 1;
  model_options.layers = &layer;
  TRY(foldkv_model_create(&model_options, &model, &error));
  TRY(foldkv_sequence_create(runtime, model, NULL, NULL, &sequence, &error));

  feed.sequence = sequence;
  feed.token_count = 2;
  attend.query = tensor(query, 2);
  attend.key = tensor(key, 2);
  attend.value = tensor(value, 2);
  attend.output = tensor(output, 2);
  TRY(foldkv_step_begin(runtime, &feed, 1, NULL, &step, &error));
  TRY(foldkv_step_attend(step, 0, &attend, &error));
  TRY(foldkv_step_commit(step, &error));
  foldkv_step_release(step);
  foldkv_sequence_release(sequence);
  foldkv_model_release(model);
  foldkv_runtime_release(runtime);

  /* Queries of zeros weigh all tokens alike: the second row is the mean of both values. */
  if (fabsf(output[2] - 2.0f) > 1e-3f || fabsf(output[3] - 4.0f) > 1e-3f) return 1;
  printf("foldkv %s works\n", foldkv_version());
  return 0;
}
