/*
 * 8. Truncation: speculative decoding.
 *
 * A cheap guesser proposes a few words; the model reads them all in one step and keeps those that it would have said
 * itself. The rest is cut off again with foldkv_sequence_truncate, which leaves no trace: the text is the one that the
 * model writes alone, word by word, in fewer steps. Here the guesser knows the model's words, and lies now and then.
 */
#include "toy_model.h"

enum { PROMPT = 200, LENGTH = 60, DRAFTS = 4 };

static foldkv_sequence* prompt_sequence(foldkv_runtime* runtime, const foldkv_model* model, int* next) {
  static float logits[MOST_ROWS][WORDS];
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_sequence* sequence = NULL;
  int words[PROMPT], count = PROMPT;
  for (int i = 0; i < PROMPT; ++i) words[i] = (5 * i + i / 11) % WORDS;
  MUST(foldkv_sequence_create(runtime, model, NULL, NULL, &sequence, &error));
  feed_words(runtime, &sequence, &count, 1, words, logits);
  *next = best_word(logits[PROMPT - 1]);
  return sequence;
}

/* Word by word; returns the number of steps. */
static int write_alone(foldkv_runtime* runtime, foldkv_sequence* sequence, int next, int* text) {
  float logits[1][WORDS];
  int one = 1;
  for (int i = 0; i < LENGTH; ++i) {
    text[i] = next;
    feed_words(runtime, &sequence, &one, 1, &text[i], logits);
    next = best_word(logits[0]);
  }
  return LENGTH;
}

/* With guesses: the word that is certain and DRAFTS guesses in each step. */
static int write_with_drafts(foldkv_runtime* runtime, foldkv_sequence* sequence, int next, const int* guesses,
                             int* text) {
  float logits[DRAFTS + 1][WORDS];
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  int steps = 0, written = 0;
  while (written < LENGTH) {
    int words[DRAFTS + 1], count = 1, accepted = 1;
    words[0] = next;
    for (; count <= DRAFTS && written + count < LENGTH; ++count) {
      const int lies = (written + count) % 7 == 0;
      words[count] = lies ? (guesses[written + count] + 1) % WORDS : guesses[written + count];
    }
    feed_words(runtime, &sequence, &count, 1, words, logits);
    /* A guess stays when it is what the model says after the words before it. */
    while (accepted < count && words[accepted] == best_word(logits[accepted - 1])) ++accepted;
    memcpy(text + written, words, (size_t)accepted * sizeof(int));
    written += accepted;
    next = best_word(logits[accepted - 1]);
    MUST(foldkv_sequence_truncate(sequence, PROMPT + written, &error));
    ++steps;
  }
  return steps;
}

int main(void) {
  foldkv_runtime* runtime = make_runtime(64u << 20, 1);
  foldkv_model* model = make_toy_model();
  int alone[LENGTH], drafted[LENGTH], next = 0;

  foldkv_sequence* straight = prompt_sequence(runtime, model, &next);
  const int steps_alone = write_alone(runtime, straight, next, alone);
  foldkv_sequence* speculating = prompt_sequence(runtime, model, &next);
  const int steps = write_with_drafts(runtime, speculating, next, alone, drafted);

  printf("%d words in %d steps instead of %d\n", LENGTH, steps, steps_alone);
  CHECK(memcmp(alone, drafted, sizeof(alone)) == 0);
  CHECK(steps * 2 < steps_alone);
  CHECK(stats_of(speculating).tokens == PROMPT + LENGTH);
  CHECK(stats_of(speculating).bytes == stats_of(straight).bytes);

  foldkv_sequence_release(straight);
  foldkv_sequence_release(speculating);
  foldkv_model_release(model);
  foldkv_runtime_release(runtime);
  return 0;
}
