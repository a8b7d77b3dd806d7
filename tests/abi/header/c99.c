/* The header comes first and alone: it must bring what it needs, in C99 with -pedantic. */
#include "foldkv/foldkv.h"

#ifdef __cplusplus
#error "this file checks the header as C; a C++ compiler sees something else"
#endif
#if __STDC_VERSION__ != 199901L
#error "this file checks the header as C99"
#endif

#include <stdio.h>
#include <string.h>

static int failures = 0;

static void expect(int condition, const char* what) {
  if (!condition) {
    fprintf(stderr, "failed: %s\n", what);
    ++failures;
  }
}
#define EXPECT(condition) expect((condition) != 0, #condition)

static void version_is_that_of_the_header(void) {
  char expected[32];
  snprintf(expected, sizeof expected, "%d.%d.%d", FOLDKV_VERSION_MAJOR, FOLDKV_VERSION_MINOR, FOLDKV_VERSION_PATCH);
  EXPECT(strcmp(foldkv_version(), expected) == 0);
  EXPECT(foldkv_abi_version() == FOLDKV_ABI_VERSION);
  EXPECT(strlen(foldkv_build_info()) > 0 && strchr(foldkv_build_info(), '\n') == NULL);
}

static void every_status_has_its_name(void) {
  static const char* const names[] = {"FOLDKV_OK",        "FOLDKV_E_ARGUMENT", "FOLDKV_E_VERSION",
                                      "FOLDKV_E_BUDGET",  "FOLDKV_E_MEMORY",   "FOLDKV_E_UNSUPPORTED",
                                      "FOLDKV_E_STATE",   "FOLDKV_E_MISMATCH", "FOLDKV_E_CORRUPT",
                                      "FOLDKV_E_NUMERIC", "FOLDKV_E_BACKEND",  "FOLDKV_E_INTERNAL",
                                      "FOLDKV_E_FILE",    "FOLDKV_E_CANCELLED"};
  foldkv_status status;
  for (status = FOLDKV_OK; status <= FOLDKV_E_CANCELLED; ++status) {
    EXPECT(strcmp(foldkv_status_name(status), names[status]) == 0);
  }
  EXPECT(strcmp(foldkv_status_name(FOLDKV_E_CANCELLED + 1), "FOLDKV_E_UNKNOWN") == 0);
  EXPECT(strcmp(foldkv_status_name(-1), "FOLDKV_E_UNKNOWN") == 0);
}

static void releasing_nothing_is_allowed(void) {
  foldkv_runtime_release(NULL);
  foldkv_model_release(NULL);
  foldkv_profile_release(NULL);
  foldkv_calibrator_release(NULL);
  foldkv_sequence_release(NULL);
  foldkv_step_release(NULL);
}

static void zeroed_structs_know_their_size(void) {
  const foldkv_runtime_options options = FOLDKV_INIT(foldkv_runtime_options);
  foldkv_runtime_options zero;
  memset(&zero, 0, sizeof zero);
  zero.struct_size = (uint32_t)sizeof zero;
  EXPECT(memcmp(&options, &zero, sizeof zero) == 0);
}

static void errors_name_the_argument_and_leave_outputs_alone(void) {
  foldkv_error error = FOLDKV_INIT(foldkv_error);
  foldkv_runtime_options options = FOLDKV_INIT(foldkv_runtime_options); /* no budget */
  foldkv_runtime* const untouched = (foldkv_runtime*)(void*)&options;
  foldkv_runtime* runtime = untouched;
  EXPECT(foldkv_runtime_create(&options, &runtime, &error) == FOLDKV_E_ARGUMENT);
  EXPECT(runtime == untouched);
  EXPECT(error.status == FOLDKV_E_ARGUMENT);
  EXPECT(strstr(error.argument, "budget_bytes") != NULL);
  EXPECT(strlen(error.message) > 0);
  EXPECT(foldkv_runtime_create(&options, &runtime, NULL) == FOLDKV_E_ARGUMENT);
}

int main(void) {
  version_is_that_of_the_header();
  every_status_has_its_name();
  releasing_nothing_is_allowed();
  zeroed_structs_know_their_size();
  errors_name_the_argument_and_leave_outputs_alone();
  return failures == 0 ? 0 : 1;
}
