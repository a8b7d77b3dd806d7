/*
 * 2. Hidden states: the library projects.
 *
 * A host that binds the weights of a layer hands over hidden states and gets the projected output back: projections,
 * bias, rotation, attention and the output product all happen inside. Weights are borrowed, not copied.
 *
 * The program feeds the same tokens a second time as q, k, v that it projected itself, and compares. On the way a step
 * is given up: releasing without commit leaves the sequence as it was.
 */
#include "course.h"

enum { HIDDEN = 24, QUERY_HEADS = 4, KV_HEADS = 2, HEAD_SIZE = 8, TOKENS = 10 };
enum { Q = QUERY_HEADS * HEAD_SIZE, P = KV_HEADS * HEAD_SIZE };
static const double frequencies[HEAD_SIZE / 2] = {1.0, 0.1, 0.01, 0.001};

/* As engines store them: [out, in], y = x * weight^T + bias. */
static float query_weight[Q][HIDDEN], key_weight[P][HIDDEN], value_weight[P][HIDDEN], output_weight[HIDDEN][Q];
static float key_bias[P];
static float hidden[TOKENS][HIDDEN];

/* y [TOKENS, out] = x [TOKENS, in] * weight^T + bias */
static void project(const float* x, int in, const float* weight, const float* bias, int out, float* y) {
  for (int token = 0; token < TOKENS; ++token) {
    for (int o = 0; o < out; ++o) {
      double sum = bias == NULL ? 0.0 : bias[o];
      for (int i = 0; i < in; ++i) sum += (double)x[token * in + i] * weight[o * in + i];
      y[token * out + o] = (float)sum;
    }
  }
}

static foldkv_model* make_model(int with_weights) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_rotation rotation = FOLDKV_INIT(foldkv_rotation);
  foldkv_layer layer = FOLDKV_INIT(foldkv_layer);
  foldkv_model_options options = FOLDKV_INIT(foldkv_model_options);
  foldkv_model* model = NULL;
  rotation.pairing = FOLDKV_PAIRING_INTERLEAVED; /* number 2j of a head turns together with number 2j + 1 */
  rotation.inverse_frequencies = frequencies;
  rotation.frequency_count = HEAD_SIZE / 2;
  layer.query_heads = QUERY_HEADS;
  layer.kv_heads = KV_HEADS;
  layer.head_size = HEAD_SIZE;
  layer.rotation = &rotation;
  options.layer_count = 1;
  options.layers = &layer;
  options.hidden_size = HIDDEN;
  MUST(foldkv_model_create(&options, &model, &error));
  if (with_weights) {
    foldkv_layer_weights weights = FOLDKV_INIT(foldkv_layer_weights);
    weights.query = dense(&query_weight[0][0], Q, HIDDEN, 0);
    weights.key = dense(&key_weight[0][0], P, HIDDEN, 0);
    weights.value = dense(&value_weight[0][0], P, HIDDEN, 0);
    weights.output = dense(&output_weight[0][0], HIDDEN, Q, 0);
    weights.key_bias = dense(key_bias, P, 0, 0);
    MUST(foldkv_model_bind_weights(model, 0, &weights, &error));
  }
  return model;
}

static foldkv_sequence* make_sequence(foldkv_runtime* runtime, const foldkv_model* model) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_sequence_options options = FOLDKV_INIT(foldkv_sequence_options);
  foldkv_sequence* sequence = NULL;
  options.dtype = FOLDKV_F32;
  MUST(foldkv_sequence_create(runtime, model, NULL, &options, &sequence, &error));
  return sequence;
}

/* One step of all tokens through the one layer. */
static void feed_tokens(foldkv_runtime* runtime, foldkv_sequence* sequence, const foldkv_attend* attend, int32_t output,
                        int commit) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_feed feed = FOLDKV_INIT(foldkv_feed);
  foldkv_step_options options = FOLDKV_INIT(foldkv_step_options);
  foldkv_step* step = NULL;
  feed.sequence = sequence;
  feed.token_count = TOKENS;
  options.output = output;
  MUST(foldkv_step_begin(runtime, &feed, 1, &options, &step, &error));
  MUST(foldkv_step_attend(step, 0, attend, &error));
  if (commit) MUST(foldkv_step_commit(step, &error));
  foldkv_step_release(step);
}

static int64_t token_count(const foldkv_sequence* sequence) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_sequence_stats stats = FOLDKV_INIT(foldkv_sequence_stats);
  MUST(foldkv_sequence_get_stats(sequence, &stats, &error));
  return stats.tokens;
}

int main(void) {
  fill_with_noise(&query_weight[0][0], Q * HIDDEN, 1);
  fill_with_noise(&key_weight[0][0], P * HIDDEN, 2);
  fill_with_noise(&value_weight[0][0], P * HIDDEN, 3);
  fill_with_noise(&output_weight[0][0], HIDDEN * Q, 4);
  fill_with_noise(key_bias, P, 5);
  fill_with_noise(&hidden[0][0], TOKENS * HIDDEN, 6);

  foldkv_runtime* runtime = make_runtime(16u << 20, 0);

  /* By hidden states: in comes what the layer's input norm gave, out comes what is added to the residual. */
  foldkv_model* model = make_model(1);
  foldkv_sequence* sequence = make_sequence(runtime, model);
  static float projected[TOKENS][HIDDEN], log_sum_exp[TOKENS][QUERY_HEADS];
  foldkv_attend by_hidden = FOLDKV_INIT(foldkv_attend);
  by_hidden.hidden = dense(&hidden[0][0], TOKENS, HIDDEN, 0);
  by_hidden.output = dense(&projected[0][0], TOKENS, HIDDEN, 0);
  by_hidden.log_sum_exp = dense(&log_sum_exp[0][0], TOKENS, QUERY_HEADS, 0);
  feed_tokens(runtime, sequence, &by_hidden, FOLDKV_OUTPUT_PROJECTED, 0);
  CHECK(token_count(sequence) == 0);
  feed_tokens(runtime, sequence, &by_hidden, FOLDKV_OUTPUT_PROJECTED, 1);
  CHECK(token_count(sequence) == TOKENS);
  printf("a step given up left 0 tokens, a step committed %d\n", TOKENS);

  /* By q, k, v: the host projects before and after. Biases are in, rotation is not. */
  static float query[TOKENS][Q], key[TOKENS][P], value[TOKENS][P], context[TOKENS][Q], expected[TOKENS][HIDDEN];
  project(&hidden[0][0], HIDDEN, &query_weight[0][0], NULL, Q, &query[0][0]);
  project(&hidden[0][0], HIDDEN, &key_weight[0][0], key_bias, P, &key[0][0]);
  project(&hidden[0][0], HIDDEN, &value_weight[0][0], NULL, P, &value[0][0]);
  foldkv_model* plain_model = make_model(0);
  foldkv_sequence* plain_sequence = make_sequence(runtime, plain_model);
  static float plain_log_sum_exp[TOKENS][QUERY_HEADS];
  foldkv_attend by_qkv = FOLDKV_INIT(foldkv_attend);
  by_qkv.query = dense(&query[0][0], TOKENS, QUERY_HEADS, HEAD_SIZE);
  by_qkv.key = dense(&key[0][0], TOKENS, KV_HEADS, HEAD_SIZE);
  by_qkv.value = dense(&value[0][0], TOKENS, KV_HEADS, HEAD_SIZE);
  by_qkv.output = dense(&context[0][0], TOKENS, QUERY_HEADS, HEAD_SIZE);
  by_qkv.log_sum_exp = dense(&plain_log_sum_exp[0][0], TOKENS, QUERY_HEADS, 0);
  feed_tokens(runtime, plain_sequence, &by_qkv, FOLDKV_OUTPUT_CONTEXT, 1);
  project(&context[0][0], Q, &output_weight[0][0], NULL, HIDDEN, &expected[0][0]);

  const float distance = relative_distance(&projected[0][0], &expected[0][0], TOKENS * HIDDEN);
  const float mass_distance = relative_distance(&log_sum_exp[0][0], &plain_log_sum_exp[0][0], TOKENS * QUERY_HEADS);
  printf("hidden states against q, k, v: outputs differ by %.1e, log-sum-exps by %.1e of the largest\n",
         (double)distance, (double)mass_distance);
  CHECK(distance < 1e-4f && mass_distance < 1e-4f);

  foldkv_sequence_release(plain_sequence);
  foldkv_model_release(plain_model);
  foldkv_sequence_release(sequence);
  foldkv_model_release(model);
  foldkv_runtime_release(runtime);
  return 0;
}
