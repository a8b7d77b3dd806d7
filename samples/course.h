/*
 * What every program of the course needs and none is about: stopping with words when a call fails or a number is wrong,
 * dense tensors, numbers that are the same on every machine. C99 and C++.
 */
#ifndef SAMPLES_COURSE_H_
#define SAMPLES_COURSE_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foldkv/foldkv.h"

/* Runs a call that takes `&error` last, and stops the program when it fails. */
#define MUST(call) course_must((call), &error, #call)

/* Stops the program when something that the text claims is not so. */
#define CHECK(condition) course_check((condition) != 0, #condition, __FILE__, __LINE__)

static inline void course_must(foldkv_status status, const foldkv_error* error, const char* call) {
  if (status == FOLDKV_OK) return;
  fprintf(stderr, "%s\n  %s, argument '%s': %s\n", call, foldkv_status_name(status), error->argument, error->message);
  exit(1);
}

static inline void course_check(int holds, const char* condition, const char* file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: this should hold: %s\n", file, line, condition);
  exit(1);
}

/* A runtime of the default backend (sample 1 makes one by hand). threads 0: one for each core. */
static inline foldkv_runtime* make_runtime(uint64_t budget_bytes, int32_t threads) {
  foldkv_error error;
  foldkv_runtime_options options;
  foldkv_runtime* runtime = NULL;
  memset(&error, 0, sizeof error);
  memset(&options, 0, sizeof options);
  error.struct_size = (uint32_t)sizeof error;
  options.struct_size = (uint32_t)sizeof options;
  options.budget_bytes = budget_bytes;
  options.threads = threads;
  MUST(foldkv_runtime_create(&options, &runtime, &error));
  return runtime;
}

/* A view of data as rows x a x b, row by row; b = 0 means two dimensions, a = 0 one. */
static inline foldkv_tensor dense(float* data, int64_t rows, int64_t a, int64_t b) {
  foldkv_tensor view;
  memset(&view, 0, sizeof view);
  view.data = data;
  view.dtype = FOLDKV_F32;
  view.rank = b > 0 ? 3 : a > 0 ? 2 : 1;
  view.shape[0] = rows;
  view.shape[1] = a;
  view.shape[2] = b;
  return view;
}

/* Evenly spread in [-1, 1). The state is any number to start with. */
static inline float noise(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (float)(int32_t)(*state >> 32) * (1.0f / 2147483648.0f);
}

static inline void fill_with_noise(float* numbers, int64_t count, uint64_t seed) {
  for (int64_t i = 0; i < count; ++i) numbers[i] = noise(&seed);
}

/* The largest distance between two arrays, divided by the largest magnitude of the second. */
static inline float relative_distance(const float* a, const float* b, int64_t count) {
  float distance = 0.0f, magnitude = 0.0f;
  for (int64_t i = 0; i < count; ++i) {
    const float d = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i], m = b[i] > 0 ? b[i] : -b[i];
    if (!(d <= distance)) distance = d;
    if (m > magnitude) magnitude = m;
  }
  return magnitude > 0.0f ? distance / magnitude : distance;
}

#endif /* SAMPLES_COURSE_H_ */
