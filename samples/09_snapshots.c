/*
 * 9. Snapshots, spilling and pressure: more conversations than memory.
 *
 * A snapshot outlives the process: it says which model, profile and options it belongs to and is refused by any other.
 * A spilled sequence goes to a file of the process and comes back by itself. A runtime that runs out of budget asks the
 * host, which knows what is cold.
 */
#include "toy_model.h"

enum { PROMPT = 400, CHATS = 12 };

typedef struct chats {
  foldkv_sequence* sequences[CHATS];
  int count, spilled;
} chats;

/* Asked by the library in the middle of a call: the oldest chat that is in memory goes to the disk. */
static int32_t make_room(void* context, uint64_t needed_bytes) {
  chats* all = context;
  (void)needed_bytes;
  for (int i = 0; i < all->count; ++i) {
    if (stats_of(all->sequences[i]).spilled) continue;
    if (foldkv_sequence_spill(all->sequences[i], NULL) != FOLDKV_OK) continue; /* in a step right now */
    ++all->spilled;
    return 1;
  }
  return 0;
}

static void fill_words(int* words, int count, int seed) {
  for (int i = 0; i < count; ++i) words[i] = (seed * 13 + i * i) % WORDS;
}

int main(void) {
  static float logits[MOST_ROWS][WORDS], again[MOST_ROWS][WORDS];
  static chats all;
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_runtime_options options = FOLDKV_INIT(foldkv_runtime_options);
  foldkv_runtime* runtime = NULL;
  options.budget_bytes = 800 * 1024;
  options.threads = 1;
  options.spill_directory = "/tmp";
  options.pressure = make_room;
  options.pressure_context = &all;
  MUST(foldkv_runtime_create(&options, &runtime, &error));
  foldkv_model* model = make_toy_model();

  /* Twelve chats of 400 words, each of which takes a seventh of the budget. */
  int words[PROMPT], count = PROMPT;
  for (; all.count < CHATS; ++all.count) {
    MUST(foldkv_sequence_create(runtime, model, NULL, NULL, &all.sequences[all.count], &error));
    fill_words(words, PROMPT, all.count);
    feed_words(runtime, &all.sequences[all.count], &count, 1, words, logits);
  }
  foldkv_runtime_stats stats = FOLDKV_INIT(foldkv_runtime_stats);
  MUST(foldkv_runtime_get_stats(runtime, &stats, &error));
  printf("%d chats, %d of them in files: %llu of %llu bytes used\n", CHATS, all.spilled,
         (unsigned long long)stats.used_bytes, (unsigned long long)stats.budget_bytes);
  CHECK(all.spilled > 0 && stats.used_bytes <= stats.budget_bytes);

  /* The first one, which is in a file, goes on as if it had always been there. */
  const int one = 1, word = 7;
  foldkv_sequence *first = all.sequences[0], *fresh = NULL, *restored = NULL;
  CHECK(stats_of(first).spilled == 1);
  MUST(foldkv_sequence_create(runtime, model, NULL, NULL, &fresh, &error));
  fill_words(words, PROMPT, 0);
  feed_words(runtime, &fresh, &count, 1, words, logits);
  feed_words(runtime, &fresh, &one, 1, &word, logits);
  feed_words(runtime, &first, &one, 1, &word, again);
  CHECK(memcmp(logits[0], again[0], sizeof(logits[0])) == 0);

  /* To a file that the next process reads. The note holds what the host needs besides: here its words. */
  const char* const path = "09_snapshots.fkvs";
  foldkv_save_options save = FOLDKV_INIT(foldkv_save_options);
  const foldkv_sequence* saved[1] = {first};
  foldkv_sequence* out[1] = {NULL};
  int32_t restored_count = 0;
  save.compression = 3;
  save.note = words;
  save.note_size = sizeof(words);
  MUST(foldkv_sequences_save_file(saved, 1, &save, path, &error));
  MUST(foldkv_sequences_restore_file(runtime, model, NULL, NULL, path, out, 1, &restored_count, &error));
  restored = out[0];
  CHECK(restored_count == 1 && stats_of(restored).tokens == PROMPT + 1);
  feed_words(runtime, &restored, &one, 1, &word, logits);
  feed_words(runtime, &first, &one, 1, &word, again);
  CHECK(memcmp(logits[0], again[0], sizeof(logits[0])) == 0);
  printf("restored from %s: %lld words, the same logits\n", path, (long long)stats_of(restored).tokens);
  remove(path);

  for (int i = 0; i < CHATS; ++i) foldkv_sequence_release(all.sequences[i]);
  foldkv_sequence_release(fresh);
  foldkv_sequence_release(restored);
  foldkv_model_release(model);
  CHECK(used_bytes(runtime) == 0);
  foldkv_runtime_release(runtime);
  return 0;
}
