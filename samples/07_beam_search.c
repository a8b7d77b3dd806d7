/*
 * 7. Forks: beam search over one prompt.
 *
 * A fork holds the pages of its original until one of the two writes to them. The prompt is fed once and lies in memory
 * once, however many beams go on from it; a beam that loses is released, and what it alone held is free.
 */
#include "toy_model.h"

enum { PROMPT = 300, BEAMS = 4, LENGTH = 24 };

typedef struct beam {
  foldkv_sequence* sequence;
  double score; /* sum of the words' log-probabilities */
  int words[LENGTH];
  float logits[WORDS]; /* of the word after them */
} beam;

typedef struct candidate {
  double score;
  int parent, word;
} candidate;

static double log_of_sum(const float* logits) {
  double sum = 0.0;
  for (int word = 0; word < WORDS; ++word) sum += exp((double)logits[word]);
  return log(sum);
}

static int by_score(const void* a, const void* b) {
  const candidate *first = a, *second = b;
  if (first->score != second->score) return first->score < second->score ? 1 : -1;
  return first->parent != second->parent ? first->parent - second->parent : first->word - second->word;
}

/* The best continuations of all beams take the places of the beams. */
static void choose(beam* beams, int beam_count, int length) {
  static candidate candidates[BEAMS * WORDS];
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  beam next[BEAMS];
  for (int i = 0; i < beam_count; ++i) {
    const double all = log_of_sum(beams[i].logits);
    for (int word = 0; word < WORDS; ++word) {
      candidates[i * WORDS + word] = (candidate){beams[i].score + (double)beams[i].logits[word] - all, i, word};
    }
  }
  qsort(candidates, (size_t)beam_count * WORDS, sizeof(candidate), by_score);
  for (int i = 0; i < BEAMS; ++i) {
    next[i] = beams[candidates[i].parent];
    next[i].score = candidates[i].score;
    next[i].words[length] = candidates[i].word;
    MUST(foldkv_sequence_fork(beams[candidates[i].parent].sequence, &next[i].sequence, &error));
  }
  for (int i = 0; i < beam_count; ++i) foldkv_sequence_release(beams[i].sequence);
  memcpy(beams, next, sizeof(next));
}

static void feed_beams(foldkv_runtime* runtime, beam* beams, int length) {
  static float logits[BEAMS][WORDS];
  foldkv_sequence* sequences[BEAMS];
  int counts[BEAMS], words[BEAMS];
  for (int i = 0; i < BEAMS; ++i) {
    sequences[i] = beams[i].sequence;
    counts[i] = 1;
    words[i] = beams[i].words[length];
  }
  feed_words(runtime, sequences, counts, BEAMS, words, logits);
  for (int i = 0; i < BEAMS; ++i) memcpy(beams[i].logits, logits[i], sizeof(logits[i]));
}

int main(void) {
  static float logits[MOST_ROWS][WORDS];
  static beam beams[BEAMS];
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_runtime* runtime = make_runtime(64u << 20, 1);
  foldkv_model* model = make_toy_model();
  int words[PROMPT + LENGTH], count = PROMPT;
  for (int i = 0; i < PROMPT; ++i) words[i] = (i * i + i / 7) % WORDS;
  MUST(foldkv_sequence_create(runtime, model, NULL, NULL, &beams[0].sequence, &error));
  feed_words(runtime, &beams[0].sequence, &count, 1, words, logits);
  memcpy(beams[0].logits, logits[PROMPT - 1], sizeof(beams[0].logits));
  const uint64_t one = used_bytes(runtime);

  for (int length = 0; length < LENGTH; ++length) {
    choose(beams, length == 0 ? 1 : BEAMS, length);
    feed_beams(runtime, beams, length);
  }
  const uint64_t all = used_bytes(runtime);
  printf("%d beams of %d words after a prompt of %d: %llu bytes, the prompt alone %llu\n", BEAMS, LENGTH, PROMPT,
         (unsigned long long)all, (unsigned long long)one);
  CHECK(all < one * 3 / 2);
  CHECK(stats_of(beams[0].sequence).shared_bytes > stats_of(beams[0].sequence).bytes / 2);

  /* The best beam, fed as one text: the same logits, bit for bit. */
  foldkv_sequence* straight = NULL;
  int last = 1;
  MUST(foldkv_sequence_create(runtime, model, NULL, NULL, &straight, &error));
  feed_words(runtime, &straight, &count, 1, words, logits);
  for (int i = 0; i < LENGTH; ++i) feed_words(runtime, &straight, &last, 1, &beams[0].words[i], logits);
  CHECK(memcmp(logits[0], beams[0].logits, sizeof(beams[0].logits)) == 0);
  printf("best beam: %.3f nats, worst %.3f\n", beams[0].score, beams[BEAMS - 1].score);

  for (int i = 0; i < BEAMS; ++i) foldkv_sequence_release(beams[i].sequence);
  foldkv_sequence_release(straight);
  foldkv_model_release(model);
  CHECK(used_bytes(runtime) == 0);
  foldkv_runtime_release(runtime);
  return 0;
}
