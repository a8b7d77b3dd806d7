/*
 * FoldKV: a runtime that owns the KV cache of a language model in compressed form.
 *
 * This header is the only public surface of the library, in one piece, since bindings are generated from it. It is C99
 * and may be included from C++.
 *
 * Life of a cache
 *   runtime (device, arena, byte budget)  +  model (geometry)  [+ profile (what calibration learned)]
 *     -> sequence -> step: begin, attend for layer 0, 1, 2 ..., commit   (prompt and generation alike)
 *
 * Errors. Every function that can fail returns a foldkv_status (FOLDKV_OK is 0) and takes, as its last
 * parameter, an optional foldkv_error that the caller allocates; NULL is allowed. On failure output
 * parameters are untouched and no object has changed. Release functions return nothing and accept NULL.
 *
 * Structs. Every struct except foldkv_tensor begins with struct_size, which the caller sets to
 * sizeof(the struct); all other bytes zero means "default". FOLDKV_INIT(type) makes such a value in C.
 * Fields and enumerators are only appended, never moved. A library older than the caller refuses
 * non-zero bytes that it does not know (FOLDKV_E_VERSION).
 *
 * Threads. A const handle may be used by any number of threads at once; a non-const handle is used by one
 * thread at a time. The runtime is the exception: all its functions may be called concurrently. A sequence
 * that takes part in an open step belongs to that step until commit or release.
 *
 * Ownership. Handles are reference-counted inside: an object keeps what it was made from alive, so handles
 * may be released in any order. Memory that the caller passes is only read or written during the call,
 * except the weights bound with foldkv_model_bind_weights, which stay borrowed until the model is gone.
 *
 * Units. Sizes are in bytes when the name says bytes, else in elements or tokens. Logarithms are natural.
 *
 * Since 0.1.
 */
#ifndef FOLDKV_FOLDKV_H_
#define FOLDKV_FOLDKV_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(FOLDKV_STATIC)
#define FOLDKV_API
#elif defined(_WIN32)
#ifdef FOLDKV_BUILDING
#define FOLDKV_API __declspec(dllexport)
#else
#define FOLDKV_API __declspec(dllimport)
#endif
#else
#define FOLDKV_API __attribute__((visibility("default")))
#endif

#define FOLDKV_VERSION_MAJOR 0
#define FOLDKV_VERSION_MINOR 1
#define FOLDKV_VERSION_PATCH 0
/* Grows only when a program built against an older header could not run with a newer library. */
#define FOLDKV_ABI_VERSION 1

/* A zeroed struct with its size set: foldkv_feed feed = FOLDKV_INIT(foldkv_feed); (C only). */
#define FOLDKV_INIT(type) {.struct_size = (uint32_t)sizeof(type)}

/* ---------------------------------------------------------------------------------------- status */

typedef int32_t foldkv_status;
enum {
  FOLDKV_OK = 0,
  FOLDKV_E_ARGUMENT = 1,    /* an argument is wrong; foldkv_error.argument names it */
  FOLDKV_E_VERSION = 2,     /* struct, file or plugin of a version this library does not know */
  FOLDKV_E_BUDGET = 3,      /* the runtime's byte budget does not hold it */
  FOLDKV_E_MEMORY = 4,      /* the host is out of memory */
  FOLDKV_E_UNSUPPORTED = 5, /* understood, but no kernel does it; the message says which */
  FOLDKV_E_STATE = 6,       /* the call is not allowed now (order of layers, sequence in a step ...) */
  FOLDKV_E_MISMATCH = 7,    /* profile, model or sequence do not belong together */
  FOLDKV_E_CORRUPT = 8,     /* bytes failed verification */
  FOLDKV_E_NUMERIC = 9,     /* NaN, infinity, or a number beyond the range of its format */
  FOLDKV_E_BACKEND = 10,    /* the backend failed; foldkv_error.native_code has its code */
  FOLDKV_E_INTERNAL = 11,   /* a fault of this library; please report it */
  FOLDKV_E_FILE = 12,       /* a file, or a callback of the host that stands for one, failed; foldkv_error.native_code has
                               the code of the system or of the callback */
  FOLDKV_E_CANCELLED = 13   /* the host set the flag that it had given to the call */
};

typedef struct foldkv_error {
  uint32_t struct_size;
  foldkv_status status;
  int32_t native_code; /* code of the backend or operating system, 0 when there is none */
  char argument[64];   /* name of the offending argument, "" when there is none */
  char message[444];   /* what was got and what was expected, always terminated */
} foldkv_error;

/* Static text such as "FOLDKV_E_BUDGET"; "FOLDKV_E_UNKNOWN" for a number that has no name. */
FOLDKV_API const char* foldkv_status_name(foldkv_status status);

/* -------------------------------------------------------------------------- version and backends */

FOLDKV_API const char* foldkv_version(void);     /* "0.1.0" */
FOLDKV_API int32_t foldkv_abi_version(void);     /* FOLDKV_ABI_VERSION of the library */
FOLDKV_API const char* foldkv_build_info(void);  /* compiler, options, libraries; one line */

typedef struct foldkv_backend_info {
  uint32_t struct_size;
  int32_t device_count;
  char name[32];             /* "cpu", "reference" */
  char instruction_set[32];  /* what this machine would run: "avx512amx", "avx512vnni", "avx512", "avx2", "portable" */
  char description[192];
} foldkv_backend_info;

FOLDKV_API int32_t foldkv_backend_count(void);
FOLDKV_API foldkv_status foldkv_backend_get(int32_t index, foldkv_backend_info* info, foldkv_error* error);

/* ---------------------------------------------------------------------------------------- tensor */

enum { FOLDKV_F32 = 1, FOLDKV_F16 = 2, FOLDKV_BF16 = 3 };
enum { FOLDKV_HOST = 0, FOLDKV_DEVICE = 1 };

/*
 * A view of somebody's memory. FROZEN: this struct never changes.
 * Strides count elements; all strides zero means dense, row by row. The last dimension must be dense.
 * data == NULL means "absent" where that is allowed.
 */
typedef struct foldkv_tensor {
  void* data;
  int32_t dtype;    /* FOLDKV_F32, FOLDKV_F16, FOLDKV_BF16 */
  int32_t device;   /* FOLDKV_HOST, or FOLDKV_DEVICE: memory of the runtime's device */
  int32_t rank;     /* 1 to 4 */
  int32_t reserved; /* zero */
  int64_t shape[4];
  int64_t strides[4];
} foldkv_tensor;

/* --------------------------------------------------------------------------------------- runtime */

typedef struct foldkv_runtime foldkv_runtime;

/* Runs task(task_context, i) for all i in [0, count), in any order and on any threads, and returns when
 * all have returned. */
typedef void (*foldkv_parallel_for)(void* context, int32_t count, void (*task)(void* task_context, int32_t index),
                                    void* task_context);

enum { FOLDKV_LOG_ERROR = 1, FOLDKV_LOG_WARNING = 2, FOLDKV_LOG_INFO = 3 };

/* What the library would print, had it the right to. Called by the thread that is in a call of the library, from several
 * threads at once when several are; never during foldkv_step_attend. It must not call the library. */
typedef void (*foldkv_log)(void* context, int32_t level, const char* message);

/* Asked when a call does not find needed_bytes in one piece within the budget. The host may free memory here: release,
 * truncate, compress, spill or re-plan sequences that are in no open step of any thread, and answers 1; the call tries
 * once more. 0: the call fails with FOLDKV_E_BUDGET. Asked again as long as it answers 1 and bytes have become free.
 * The calls that ask: foldkv_sequence_create, _compress, _set_plan, _restore and foldkv_step_begin, and every call that
 * brings back a spilled sequence. */
typedef int32_t (*foldkv_pressure)(void* context, uint64_t needed_bytes);

typedef struct foldkv_runtime_options {
  uint32_t struct_size;
  int32_t device;              /* index of the backend's device */
  const char* backend;         /* NULL: "cpu" */
  uint64_t budget_bytes;       /* required: hard limit of all cache memory, reserved once, touched on use */
  int32_t threads;             /* own threads, the caller's included; 0: one for each core */
  int32_t deterministic;       /* 1: products of hidden states and weights use tiles that do not depend on
                                  the number of rows. Everything else is deterministic anyway */
  const char* instruction_set; /* NULL: the best of this machine; or "portable", "avx2", "avx512", "avx512vnni",
                                  "avx512amx" */
  foldkv_parallel_for parallel_for; /* the host's threads instead of own ones */
  void* parallel_for_context;
  foldkv_log log;              /* NULL: nothing is said */
  void* log_context;
  foldkv_pressure pressure;    /* NULL: FOLDKV_E_BUDGET at once */
  void* pressure_context;
  const char* spill_directory; /* where foldkv_sequence_spill may put files, which have no name and vanish with the
                                  process. NULL: nowhere. Copied */
  int32_t measure_times;       /* 1: foldkv_runtime_get_times counts */
  int32_t reserved;
} foldkv_runtime_options;

FOLDKV_API foldkv_status foldkv_runtime_create(const foldkv_runtime_options* options, foldkv_runtime** runtime,
                                               foldkv_error* error);
FOLDKV_API void foldkv_runtime_release(foldkv_runtime* runtime);

/* Bytes by what they are for. The sum of all fields after struct_size is what is in use. */
typedef struct foldkv_ledger {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t exact;       /* pages of keys and values in the cache's own number format */
  uint64_t latent;      /* pages of codes, scales and correction coefficients */
  uint64_t correction;  /* correction bases */
  uint64_t mean;        /* means of sequences */
  uint64_t positions;   /* positions of tokens, and what eviction policies remember of their attention */
  uint64_t profile;     /* bases and means of profiles, prepared for the device, shared by sequences */
  uint64_t model;       /* rotation tables and norms, shared by sequences */
  uint64_t scratch;     /* held only while a step or a call runs */
} foldkv_ledger;

typedef struct foldkv_runtime_stats {
  uint32_t struct_size;
  int32_t threads;
  uint64_t budget_bytes;
  uint64_t used_bytes;     /* sum of the ledger */
  uint64_t peak_bytes;     /* highest used_bytes so far */
  uint64_t resident_bytes; /* arena memory that has been touched and not given back */
  uint64_t largest_free_bytes;
  foldkv_ledger ledger;
  char backend[32];
  char instruction_set[32];
  int64_t sequence_count;
  int64_t spilled_sequences;
  uint64_t spilled_bytes;  /* in files */
} foldkv_runtime_stats;

FOLDKV_API foldkv_status foldkv_runtime_get_stats(const foldkv_runtime* runtime, foldkv_runtime_stats* stats,
                                                  foldkv_error* error);

/* Gives memory that is free within the budget, but was touched before, back to the system. A runtime does so by itself,
 * but keeps some for the next step. freed_bytes may be NULL. */
FOLDKV_API foldkv_status foldkv_runtime_trim(foldkv_runtime* runtime, uint64_t* freed_bytes, foldkv_error* error);

/* Seconds that calls of all threads have spent, by what they did. They do not overlap. Zeros without measure_times. */
typedef struct foldkv_times {
  uint32_t struct_size;
  uint32_t reserved;
  double project; /* products of hidden states and weights, norms and rotation of queries */
  double append;  /* writing new keys and values */
  double attend;
  double score;   /* writing down attention for eviction policies */
  double decide;  /* choosing the tokens that stay, and moving them */
  double encode;  /* compression */
  double save;    /* saving and spilling */
  double restore; /* and bringing back */
  int64_t steps;  /* committed */
} foldkv_times;

FOLDKV_API foldkv_status foldkv_runtime_get_times(const foldkv_runtime* runtime, foldkv_times* times,
                                                  foldkv_error* error);

/* ----------------------------------------------------------------------------------------- model */

typedef struct foldkv_model foldkv_model;

/* Which two numbers of a head turn together. Required; there is no default, since engines differ:
 * llama2.c files and GGUF files of llama models are interleaved, most others are half-split. */
enum { FOLDKV_PAIRING_HALF_SPLIT = 1, FOLDKV_PAIRING_INTERLEAVED = 2 };

/* Rotary position embedding: pair j turns by position * inverse_frequencies[j]; the turned numbers are then
 * multiplied by scale (YaRN's magnitude factor; it acts on queries and keys alike). With fewer than
 * head_size / 2 frequencies the first 2 * frequency_count numbers of a head turn, the rest do not. */
typedef struct foldkv_rotation {
  uint32_t struct_size;
  int32_t pairing;
  const double* inverse_frequencies; /* [frequency_count], copied */
  int32_t frequency_count;
  int32_t reserved;
  double scale; /* 0: 1 */
} foldkv_rotation;

typedef struct foldkv_layer {
  uint32_t struct_size;
  int32_t query_heads; /* a multiple of kv_heads; query head h reads KV head h / (query_heads / kv_heads) */
  int32_t kv_heads;
  int32_t head_size;              /* 1 to 512 */
  const foldkv_rotation* rotation; /* NULL: the layer does not rotate. Copied */
  int64_t window;                 /* sliding window: a query sees itself and window - 1 positions before it.
                                     0: all. Tokens that have left the window stay in memory in this version */
  double attention_scale;         /* 0: 1 / sqrt(head_size) */
  double soft_cap;                /* c: scores become c * tanh(score / c). 0: off */
  const float* query_norm;        /* [head_size] RMS norm of every query head before rotation; NULL: none. Copied */
  const float* key_norm;          /* [head_size], likewise for keys */
  double norm_epsilon;            /* 0: 1e-6 */
} foldkv_layer;

typedef struct foldkv_model_options {
  uint32_t struct_size;
  int32_t layer_count;         /* 1 to 4096 */
  const foldkv_layer* layers;  /* [layer_count]; struct_size of the first holds for all */
  int64_t hidden_size;         /* needed for hidden states and projected outputs; 0: neither is used */
  const char* name;            /* names the weights (a hash, say). Enters no result, but a profile made for a
                                  model of another name is refused. NULL: unnamed, fits all */
} foldkv_model_options;

FOLDKV_API foldkv_status foldkv_model_create(const foldkv_model_options* options, foldkv_model** model,
                                             foldkv_error* error);
FOLDKV_API void foldkv_model_release(foldkv_model* model);

/* Weights of one layer as [out, in], as engines store them: y = x * weight^T + bias. Borrowed. */
typedef struct foldkv_layer_weights {
  uint32_t struct_size;
  uint32_t reserved;
  foldkv_tensor query;  /* [query_heads * head_size, hidden_size] */
  foldkv_tensor key;    /* [kv_heads * head_size, hidden_size] */
  foldkv_tensor value;  /* [kv_heads * head_size, hidden_size] */
  foldkv_tensor output; /* [hidden_size, query_heads * head_size]; absent: no projected output */
  foldkv_tensor query_bias, key_bias, value_bias, output_bias; /* rank 1; absent: none */
} foldkv_layer_weights;

/* Must happen before the first sequence of the model is created (FOLDKV_E_STATE afterwards). */
FOLDKV_API foldkv_status foldkv_model_bind_weights(foldkv_model* model, int32_t layer,
                                                   const foldkv_layer_weights* weights, foldkv_error* error);

/* Hash of everything that changes the meaning of a cache (geometry and attention rules, not the weights). */
FOLDKV_API uint64_t foldkv_model_fingerprint(const foldkv_model* model);

/* --------------------------------------------------------------------------------------- profile */

typedef struct foldkv_profile foldkv_profile;

/* bytes are copied after verification; any change to them is detected (FOLDKV_E_CORRUPT). */
FOLDKV_API foldkv_status foldkv_profile_load(const void* bytes, size_t size, foldkv_profile** profile,
                                             foldkv_error* error);
/* Writes the file into buffer. *size receives the bytes needed; with buffer NULL that is all that happens. */
FOLDKV_API foldkv_status foldkv_profile_save(const foldkv_profile* profile, void* buffer, size_t capacity,
                                             size_t* size, foldkv_error* error);
/* FOLDKV_E_MISMATCH with the difference in words when the profile was not made for such a model. */
FOLDKV_API foldkv_status foldkv_profile_check(const foldkv_profile* profile, const foldkv_model* model,
                                              foldkv_error* error);
FOLDKV_API void foldkv_profile_release(foldkv_profile* profile);

typedef struct foldkv_profile_info {
  uint32_t struct_size;
  int32_t layer_count;
  int32_t group_count;
  int32_t centred;            /* 1: latents are differences from a mean */
  uint64_t model_fingerprint;
  uint64_t fingerprint;       /* hash of the profile's content */
  int64_t calibration_tokens; /* rows that entered the moments */
  int64_t calibration_samples;
  char model_name[128];
  char made_by[64];           /* library and version */
  int32_t plan_count;         /* 1 or more; plan 0 is the default */
  int32_t reserved;
  double shrinkage;           /* 0 to 1: see foldkv_calibrator_solve. Above 0 the profile was made from few rows */
} foldkv_profile_info;

/* A plan says with how many bits each latent coordinate is stored. All plans of a profile share its bases. */
typedef struct foldkv_plan_info {
  uint32_t struct_size;
  uint32_t reserved;
  char name[32];
  int64_t bytes_per_token;      /* codes, scales and correction coefficients of one token in all groups */
  int64_t full_bytes_per_token; /* 16-bit keys and values of one token in the same layers */
  double expected_cost;         /* mean of e^T M e over a token's errors e, with the metric M that the profile was
                                   solved in (mean square error without one) */
  double held_out_divergence;   /* see foldkv_profile_record_divergence */
  int64_t held_out_tokens;      /* that it was measured on; 0: it was not */
} foldkv_plan_info;

enum { FOLDKV_KEYS = 0, FOLDKV_VALUES = 1 };

typedef struct foldkv_group_info {
  uint32_t struct_size;
  int32_t layer_count;
  int32_t key_width;         /* of one layer: kv_heads * head_size */
  int32_t key_latent_width;  /* coordinates in the basis */
  int32_t value_latent_width;
  int32_t key_band_count;    /* of the plan asked for */
  int32_t value_band_count;
  int32_t scale_group;       /* coordinates that share a scale */
  int32_t rotated;           /* 1: rotated inside scale groups */
  int32_t correction_rank;
  int64_t bytes_per_token;   /* codes, scales and correction coefficients of one token under the plan */
  int64_t bytes_per_sequence;/* mean, correction basis and bases of the sequence's own */
  int32_t kind;              /* FOLDKV_GROUP_... */
  int32_t reserved;
  double expected_key_cost;  /* this group's parts of the plan's expected_cost */
  double expected_value_cost;
} foldkv_group_info;

/* What latents of a group are. */
enum {
  FOLDKV_GROUP_LEARNED = 0,  /* projections on the profile's bases */
  FOLDKV_GROUP_ROWS = 1,     /* keys and values themselves */
  FOLDKV_GROUP_SEQUENCE = 2, /* projections on bases that each sequence finds in its first encoded run */
  FOLDKV_GROUP_MERGED = 3    /* directions that two layers share, and norms */
};

/* How latent coordinates are stored. UNIFORM: bits (2 to 8) for each, one scale in f16 for a scale group. TRELLIS: bits
 * for each `step` coordinates, 1 to 4 for one or 1 or 3 for two; a scale of one byte for a scale group. HALF: f16, 16
 * bits, no scale; all bands of a side or none. ASYMMETRIC: bits (2 to 8) for each; a scale and the smallest number, in
 * f16, for a scale group. CHANNEL: likewise for one coordinate over 32 tokens; tokens are encoded 32 at a time. */
enum {
  FOLDKV_CODE_UNIFORM = 0,
  FOLDKV_CODE_TRELLIS = 1,
  FOLDKV_CODE_HALF = 2,
  FOLDKV_CODE_ASYMMETRIC = 3,
  FOLDKV_CODE_CHANNEL = 4
};

typedef struct foldkv_band {
  int32_t width; /* adjacent latent coordinates */
  int32_t bits;  /* 0: not stored */
  int32_t code;
  int32_t step;  /* 0: 1 */
} foldkv_band;

FOLDKV_API foldkv_status foldkv_profile_get_info(const foldkv_profile* profile, foldkv_profile_info* info,
                                                 foldkv_error* error);
FOLDKV_API foldkv_status foldkv_profile_get_plan(const foldkv_profile* profile, int32_t plan, foldkv_plan_info* info,
                                                 foldkv_error* error);
FOLDKV_API foldkv_status foldkv_profile_get_group(const foldkv_profile* profile, int32_t plan, int32_t group,
                                                  foldkv_group_info* info, foldkv_error* error);
/* layers: [layer_count of the group]. */
FOLDKV_API foldkv_status foldkv_profile_get_layers(const foldkv_profile* profile, int32_t group, int32_t* layers,
                                                   int32_t capacity, foldkv_error* error);
/* sources: [layer_count of the profile], of each layer the one whose keys and values it reads: its own but under
 * FOLDKV_CODEC_KVSHARER. */
FOLDKV_API foldkv_status foldkv_profile_get_sources(const foldkv_profile* profile, int32_t* sources, int32_t capacity,
                                                    foldkv_error* error);
/* side: FOLDKV_KEYS or FOLDKV_VALUES. bands: [band count of that side under the plan]. Coordinates of the basis
 * beyond the last band are not stored. */
FOLDKV_API foldkv_status foldkv_profile_get_bands(const foldkv_profile* profile, int32_t plan, int32_t group,
                                                  int32_t side, foldkv_band* bands, int32_t capacity,
                                                  foldkv_error* error);
/* Variance along each principal direction in falling order, all layers * key_width of them (before any rotation
 * inside scale groups); the sum is the variance of the calibration rows. */
FOLDKV_API foldkv_status foldkv_profile_get_variances(const foldkv_profile* profile, int32_t group, int32_t side,
                                                      double* variances, int32_t capacity, foldkv_error* error);

/* Published codecs that need no calibration, as profiles: a sequence takes them like any other. */
enum {
  FOLDKV_CODEC_INTEGER = 1,   /* each token and KV head with one symmetric scale */
  FOLDKV_CODEC_KIVI = 2,      /* keys per channel over 32 tokens, values per token over 32 channels (arXiv 2402.02750) */
  FOLDKV_CODEC_XKV = 3,       /* layers share singular vectors that each sequence finds (arXiv 2503.18893) */
  FOLDKV_CODEC_MINICACHE = 4, /* neighbouring layers share directions and keep norms (arXiv 2405.14366) */
  FOLDKV_CODEC_KVSHARER = 5   /* layers read other layers' keys and values (arXiv 2410.18517) */
};

typedef struct foldkv_codec_options {
  uint32_t struct_size;
  int32_t codec;
  int32_t bits;             /* 0: 8 for INTEGER, 4 for KIVI, 16 (f16) for XKV; else 2 to 8. MINICACHE has none */
  int32_t layers_per_group; /* XKV. 0: 4 */
  int32_t key_rank;         /* XKV. 0: 3/32 of the group's layers * key_width */
  int32_t value_rank;       /* XKV. 0: 9/64 of it */
  double interpolation;     /* MINICACHE: share of the upper layer's direction. 0: 0.6 */
  double retained;          /* MINICACHE: share of tokens that each head of each page keeps as they are. 0: 0.05; -1: none */
  int32_t first_layer;      /* MINICACHE: the first that is merged. 0: half of the layers */
  int32_t reserved;
  const int32_t* sources;   /* KVSHARER: [layer_count of the model], of each layer an earlier one or itself */
} foldkv_codec_options;

/* Layers with a sliding window stay exact. */
FOLDKV_API foldkv_status foldkv_profile_from_codec(const foldkv_model* model, const foldkv_codec_options* options,
                                                   foldkv_profile** profile, foldkv_error* error);

/* ------------------------------------------------------------------------------------ calibrator */

typedef struct foldkv_calibrator foldkv_calibrator;
typedef struct foldkv_sequence foldkv_sequence;

typedef struct foldkv_layer_group {
  uint32_t struct_size;
  int32_t layer_count;
  const int32_t* layers; /* rising; all of one kind (heads, head size, rotation, norms, window) */
} foldkv_layer_group;

typedef struct foldkv_calibrator_options {
  uint32_t struct_size;
  int32_t layers_per_group; /* 0: 4. Adjacent layers of one kind without a window; others stay exact */
  const foldkv_layer_group* groups; /* explicit groups instead */
  int32_t group_count;
  int32_t skip_tokens; /* first tokens of every sample left out (attention sinks). 0: 4; -1: none */
} foldkv_calibrator_options;

/* Sums are held in double precision on the host, outside the budget: per group
 * 2 * 8 * (layers * key_width)^2 bytes. */
FOLDKV_API foldkv_status foldkv_calibrator_create(foldkv_runtime* runtime, const foldkv_model* model,
                                                  const foldkv_calibrator_options* options,
                                                  foldkv_calibrator** calibrator, foldkv_error* error);
FOLDKV_API void foldkv_calibrator_release(foldkv_calibrator* calibrator);

/* One sample, or the next piece of one: keys (normed, before rotation) and values of every layer,
 * [tokens, kv_heads, head_size], host memory. first_token counts from the start of the sample. */
FOLDKV_API foldkv_status foldkv_calibrator_observe(foldkv_calibrator* calibrator, const foldkv_tensor* keys,
                                                   const foldkv_tensor* values, int32_t layer_count,
                                                   int64_t first_token, foldkv_error* error);
/* What errors of cached keys and values cost: gradients of a loss with respect to them, for the tokens [first_token, ...)
 * of a sample, shaped as in foldkv_calibrator_observe; skip_tokens are left out likewise. They need not belong to the
 * samples that are observed; tokens whose gradients are zero count as free of cost. Each token's gradient g adds
 * g g^T to the metric M of its layer.
 * With the loss -log p(y) of later tokens and y drawn from the model's own prediction, M is the Fisher metric and
 * e^T M e / 2 the divergence that a small error e causes. */
FOLDKV_API foldkv_status foldkv_calibrator_observe_gradients(foldkv_calibrator* calibrator, const foldkv_tensor* keys,
                                                             const foldkv_tensor* values, int32_t layer_count,
                                                             int64_t first_token, foldkv_error* error);
/* From now on every step of the sequence that commits is observed. The sequence must be empty and exact
 * (no profile, no eviction). calibrator NULL detaches. The calibrator may not be used by others during such a commit. */
FOLDKV_API foldkv_status foldkv_calibrator_attach(foldkv_calibrator* calibrator, foldkv_sequence* sequence,
                                                  foldkv_error* error);
/* Adds the sums of other, which must have been made with equal options for an equal model. */
FOLDKV_API foldkv_status foldkv_calibrator_merge(foldkv_calibrator* calibrator, const foldkv_calibrator* other,
                                                 foldkv_error* error);

typedef struct foldkv_calibrator_info {
  uint32_t struct_size;
  int32_t group_count;
  int64_t samples;       /* whose token 0 was observed */
  int64_t rows;          /* tokens that entered the sums of keys and values: those that were not skipped */
  int64_t gradient_rows; /* tokens whose gradients did */
} foldkv_calibrator_info;

FOLDKV_API foldkv_status foldkv_calibrator_get_info(const foldkv_calibrator* calibrator, foldkv_calibrator_info* info,
                                                    foldkv_error* error);

/* All that the calibrator has summed up, with its groups and skip_tokens, as a file. What is observed after loading it
 * gives the same bits as if there had been no file; loaded calibrators merge like others, so that several processes may
 * share the work. buffer, capacity and size as in foldkv_profile_save. The file takes, per group, 8 * (layers *
 * key_width)^2 bytes, with gradients 8 * layers * key_width^2 more, and holds 2^31 bytes at most: FOLDKV_E_UNSUPPORTED
 * beyond, fewer layers per group take less. */
FOLDKV_API foldkv_status foldkv_calibrator_save(const foldkv_calibrator* calibrator, void* buffer, size_t capacity,
                                                size_t* size, foldkv_error* error);
/* bytes are verified first: FOLDKV_E_CORRUPT for any change to them, FOLDKV_E_MISMATCH when they are of another model,
 * FOLDKV_E_VERSION when a later library wrote them. They are not kept. */
FOLDKV_API foldkv_status foldkv_calibrator_load(foldkv_runtime* runtime, const foldkv_model* model, const void* bytes,
                                                size_t size, foldkv_calibrator** calibrator, foldkv_error* error);

typedef struct foldkv_solve_options {
  uint32_t struct_size;
  int32_t latent_width;  /* 0: key_width of a layer; more than a group has: all */
  int32_t bits;          /* 0: 4. 2 to 8 */
  int32_t scale_group;   /* 0: 128 */
  int32_t rotate;        /* 1: Hadamard rotation inside scale groups (their largest power of two) */
  int32_t uncentred;     /* 1: do not subtract a mean */
  const foldkv_band* key_bands; /* explicit bands instead of latent_width and bits */
  const foldkv_band* value_bands;
  int32_t key_band_count;
  int32_t value_band_count;
  int32_t correction_rank;       /* 0: no correction */
  int32_t correction_oversample; /* 0: 8 */
  int32_t correction_iterations; /* power iterations. 0: 1; -1: none */
  int32_t use_metric;            /* 1: directions and variances in the metric of the observed gradients */
  uint64_t seed;                 /* of the correction's random test vectors */
  double metric_floor;           /* share of a layer's mean cost that every direction costs at least. 0: 0.02 */
  const int32_t* cancel;         /* the call ends with FOLDKV_E_CANCELLED when this has become non-zero, as soon as the
                                    eigenproblem that it is at is solved. NULL: never */
} foldkv_solve_options;

/* Leading eigenvectors of the covariance of the stacked keys, and of the values, of each group
 * (BellowsKV's closed form for inputs after the norm). A group with fewer rows than coordinates (layers * key_width) has
 * its covariance shrunk towards a multiple of the identity, in the metric's coordinates when there is one, by the closed
 * form of Chen, Wiesel, Eldar and Hero (2010); foldkv_profile_info.shrinkage has the largest share over groups and sides.
 * FOLDKV_E_STATE with fewer than 2 rows. */
FOLDKV_API foldkv_status foldkv_calibrator_solve(const foldkv_calibrator* calibrator,
                                                 const foldkv_solve_options* options, foldkv_profile** profile,
                                                 foldkv_error* error);

/* ----------------------------------------------------------------------------------------- plans */

/* What a plan shall take: bytes_per_token at most, or ratio (1 or more) times less than 16-bit keys and values of the
 * grouped layers. Every side of every group keeps a scale group at half a bit: what is less than that is refused. */
typedef struct foldkv_plan_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;       /* 1 to 31 bytes, different from the other plans' */
  double bytes_per_token; /* codes, scales and correction coefficients of all groups; 0: ratio counts */
  double ratio;
  double value_weight;    /* an error in values counts as this many in keys. 0: 1 */
  const double* group_weights; /* [group_count][2]: an error in keys, in values of the group counts as this many more;
                                  above 0. NULL: 1 each. See foldkv_profile_group_weights */
} foldkv_plan_options;

/* A profile with the same bases under new plans, the first of which is the default. Bits are shared out over units of
 * one scale group of coordinates each, over all groups and both sides at once, by what an error in each coordinate costs
 * (reverse water-filling over the profile's variances). It should have been solved with many coordinates (latent_width),
 * of which the bases keep those that the widest plan stores. */
FOLDKV_API foldkv_status foldkv_profile_plan(const foldkv_profile* profile, const foldkv_plan_options* plans,
                                             int32_t plan_count, foldkv_profile** planned, foldkv_error* error);

/* Weights for foldkv_plan_options out of a measurement under one of the profile's plans: measured / expected cost of
 * each group and side, scaled to a mean of 1.
 *   measured  [group_count][2], keys then values: the divergence when this side of this group alone is what the plan
 *             makes of it (foldkv_sequence_replace with what a sequence under the plan rebuilds). Finite and above 0
 *   weights   [group_count][2], written; capacity counts numbers */
FOLDKV_API foldkv_status foldkv_profile_group_weights(const foldkv_profile* profile, int32_t plan,
                                                      const double* measured, double* weights, int32_t capacity,
                                                      foldkv_error* error);

/* ----------------------------------------------------------------------------------- sensitivity */

/* How much predictions move when keys or values of single layers are perturbed (RippleKV). For every text: feed a
 * prefix to an exact sequence; fork it, feed the rest and keep the logits; for every layer fork it, perturb the layer
 * (foldkv_sequence_perturb), feed the rest, and add both logits here. */
typedef struct foldkv_sensitivity foldkv_sensitivity;

FOLDKV_API foldkv_status foldkv_sensitivity_create(const foldkv_model* model, foldkv_sensitivity** sensitivity,
                                                   foldkv_error* error);
FOLDKV_API void foldkv_sensitivity_release(foldkv_sensitivity* sensitivity);

/* One example of one layer and side. reference and perturbed: logits [rows, vocabulary] of the same tokens, FOLDKV_F32,
 * host memory. Adds the mean over rows of KL(reference || perturbed), in nats and double precision. Minus infinity is a
 * token that is ruled out; FOLDKV_E_NUMERIC for NaN, plus infinity, and a token that only perturbed rules out. */
FOLDKV_API foldkv_status foldkv_sensitivity_add(foldkv_sensitivity* sensitivity, int32_t layer, int32_t side,
                                                const foldkv_tensor* reference, const foldkv_tensor* perturbed,
                                                foldkv_error* error);
/* Adds the sums of other, which must be of an equal model. */
FOLDKV_API foldkv_status foldkv_sensitivity_merge(foldkv_sensitivity* sensitivity, const foldkv_sensitivity* other,
                                                  foldkv_error* error);

typedef struct foldkv_layer_sensitivity {
  uint32_t struct_size;
  uint32_t reserved;
  double divergence; /* nats: mean over examples of each one's mean over rows */
  int64_t rows;
  int64_t examples;  /* 0: not measured */
} foldkv_layer_sensitivity;

FOLDKV_API foldkv_status foldkv_sensitivity_get(const foldkv_sensitivity* sensitivity, int32_t layer, int32_t side,
                                                foldkv_layer_sensitivity* figures, foldkv_error* error);

/* How sensitivities came to be. */
typedef struct foldkv_sensitivity_source {
  uint32_t struct_size;
  uint32_t reserved;
  double scale;  /* of the perturbation */
  uint64_t seed;
  char text[64]; /* names what was read; terminated */
} foldkv_sensitivity_source;

/* The profile with these figures in place of any that it had. Its fingerprint stays, since no code changes: caches made
 * with the one are understood by the other. FOLDKV_E_MISMATCH for another model, FOLDKV_E_STATE when nothing was
 * added. */
FOLDKV_API foldkv_status foldkv_profile_with_sensitivity(const foldkv_profile* profile,
                                                         const foldkv_sensitivity* sensitivity,
                                                         const foldkv_sensitivity_source* source,
                                                         foldkv_profile** result, foldkv_error* error);
/* Of a profile without sensitivities examples is 0 everywhere. */
FOLDKV_API foldkv_status foldkv_profile_get_sensitivity(const foldkv_profile* profile, int32_t layer, int32_t side,
                                                        foldkv_layer_sensitivity* figures, foldkv_error* error);
/* FOLDKV_E_STATE when the profile has no sensitivities. */
FOLDKV_API foldkv_status foldkv_profile_get_sensitivity_source(const foldkv_profile* profile,
                                                               foldkv_sensitivity_source* source, foldkv_error* error);
/* A profile that also says how far a plan (NULL: the first) is from the full cache: divergence in nats per token (0 or
 * more), which the host has measured on `tokens` tokens (1 or more) of text that was not calibrated on. The fingerprint
 * stays, since no code changes. */
FOLDKV_API foldkv_status foldkv_profile_record_divergence(const foldkv_profile* profile, const char* plan,
                                                          double divergence, int64_t tokens,
                                                          foldkv_profile** recorded, foldkv_error* error);

/* -------------------------------------------------------------------------------------- eviction */

/* Which tokens stay, in five parts that can be mixed: what scores a token, how scores of rows, neighbours and heads become
 * one, who decides together, and how a budget falls on layers and heads. foldkv_policy_find fills the parts in as the
 * authors of a named system set them; change what you like, above all the budget. In every enumeration 0 is the first. */
enum {
  FOLDKV_SCORER_NONE = 1,               /* nothing is evicted */
  FOLDKV_SCORER_POSITION = 2,           /* newer is better: sinks and recent tokens */
  FOLDKV_SCORER_WINDOW = 3,             /* attention of the prompt's last rows; in generation of the rows since the last
                                           eviction */
  FOLDKV_SCORER_ACCUMULATED = 4,        /* attention of all rows so far */
  FOLDKV_SCORER_LAST_ROW = 5,           /* attention of the newest row */
  FOLDKV_SCORER_EXPECTED_ATTENTION = 6  /* attention of a forecast of the queries to come */
};
enum {
  FOLDKV_ROWS_SUM = 1,
  FOLDKV_ROWS_MEAN = 2,
  FOLDKV_ROWS_MAXIMUM = 3,
  FOLDKV_ROWS_MEAN_PLUS_VARIANCE = 4, /* mean + gamma * variance over the rows; in generation the mean */
  FOLDKV_ROWS_NEGATED_BELOW = 5       /* minus the rows that gave less than an equal share */
};
enum { FOLDKV_POOLING_NONE = 1, FOLDKV_POOLING_AVERAGE = 2, FOLDKV_POOLING_MAXIMUM = 3 };
enum { FOLDKV_HEADS_MEAN = 1, FOLDKV_HEADS_MAXIMUM = 2, FOLDKV_HEADS_SUM = 3 };
enum {
  FOLDKV_WEIGHTING_NONE = 1,
  FOLDKV_WEIGHTING_VALUE_L1 = 2,       /* times the L1 norm of the value */
  FOLDKV_WEIGHTING_VALUE_L2 = 3,
  FOLDKV_WEIGHTING_HEAD_MAXIMUM = 4,   /* times the largest L1 norm among the head's values */
  FOLDKV_WEIGHTING_OUTPUT_L1 = 5       /* times the L1 norm of the value through the output projection: needs output weights */
};
enum {
  FOLDKV_SCOPE_HEAD = 1,  /* each KV head keeps tokens of its own. In layers of a layer group: as GROUP */
  FOLDKV_SCOPE_LAYER = 2, /* the heads of a layer keep the same tokens. Likewise */
  FOLDKV_SCOPE_GROUP = 3  /* the layers of a layer group keep the same tokens */
};
enum {
  FOLDKV_LAYERS_UNIFORM = 1,
  FOLDKV_LAYERS_PYRAMID = 2,    /* falling by equal steps (PyramidKV) */
  FOLDKV_LAYERS_RIPPLE = 3,     /* by sensitivities: layer_numbers, or the profile's */
  FOLDKV_LAYERS_CAKE = 4,       /* by entropy and variance of the window's attention */
  FOLDKV_LAYERS_LAVA = 5,       /* by entropy of the scores */
  FOLDKV_LAYERS_DYNAMIC = 6,    /* by the part of the best scores of all layers (DynamicKV) */
  FOLDKV_LAYERS_IMPORTANCE = 7, /* by layer_numbers, with floor and cap (CompressKV) */
  FOLDKV_LAYERS_CUSTOM = 8,     /* in proportion to layer_numbers */
  FOLDKV_LAYERS_EPISODE = 9,    /* by similarities: layer_numbers (EpiCache) */
  FOLDKV_LAYERS_COSINE = 10     /* each layer of what the layer before it kept (PyramidInfer) */
};
enum { FOLDKV_HEAD_BUDGETS_UNIFORM = 1, FOLDKV_HEAD_BUDGETS_ADA = 2, FOLDKV_HEAD_BUDGETS_LAVA = 3 };

/* Positions [first, end). */
typedef struct foldkv_position_range {
  int64_t first;
  int64_t end;
} foldkv_position_range;

typedef struct foldkv_eviction {
  uint32_t struct_size;
  int32_t scorer;
  int32_t row_reduction;      /* 0: MEAN */
  int32_t pooling;
  int32_t pool_width;         /* odd; 0: 1 */
  int32_t pool_after_heads;   /* 1: scores are pooled once heads are reduced, 0: before */
  int32_t pool_over_protected; /* 1: tokens kept always lend to their neighbours too */
  int32_t head_reduction;
  int32_t raise_to_mean;      /* 1: scores below their head's mean are raised to it */
  int32_t weighting;
  int32_t scope;
  int32_t layer_allocator;
  int32_t head_allocator;
  int32_t window_tokens;      /* rows that a WINDOW looks at; these tokens are kept always. Their queries are held, in f32,
                                 until the prompt ends */
  int32_t sink_tokens;        /* kept always */
  int32_t recent_tokens;      /* kept always; a window is part of them */
  int32_t interval;           /* in generation a head is cut back when it holds its budget and so many tokens more, layers of
                                 a layer group when the next run becomes latents. 0: never after the prompt */
  int32_t reindexed;          /* 1: after an eviction positions are 0, 1, 2, ... and the next one follows, so that an endless
                                 text never leaves the positions that the model knows. Budgets must be uniform */
  int32_t first_stage_by_mean; /* 1: the first stage looks at plain means over rows and heads */
  int32_t ratio_of_unprotected; /* 1: keep_ratio is of the tokens that compete, those kept always come on top */
  int32_t author_rounding;    /* 1: budgets rounded as the authors do, whose sum may be another; for comparisons */
  int32_t voting_heads;       /* query heads of each layer that vote, the first of head_ranking. 0: all */
  int32_t future_tokens;      /* EXPECTED_ATTENTION: positions to come. 0: 512 */
  int32_t without_covariance; /* likewise. 1: queries are forecast by their mean alone */
  int64_t budget_tokens;      /* of each KV head and layer on average, those kept always included; or */
  double keep_ratio;          /* of the prompt's tokens: 0 to 1 */
  double window_share;        /* of the prompt, instead of window_tokens */
  double recent_share;        /* of the prompt, instead of recent_tokens */
  double gamma;               /* of MEAN_PLUS_VARIANCE */
  double newest_row_weight;   /* weights of a window's rows rise evenly from 1 to this. 0: 1 */
  double epsilon;             /* added to scores before they are weighted */
  double first_stage_share;   /* of the budget, goes to the best scores before weighting; 0: none */
  double first_stage_mass;    /* so many of the best before weighting as hold less than this share of the scores; 0: none */
  double beta;                /* PYRAMID: the last layer has base / beta. 0: 20 */
  double ripple_ratio;        /* RIPPLE: most over least sensitive layer. 0: 1.5 */
  double ripple_gamma;        /* RIPPLE: weights are clipped to [1 / gamma, gamma]. 0: 2 */
  double entropy_temperature;  /* CAKE. 0: 1 */
  double variance_temperature; /* CAKE. 0: 1 */
  double most_ratio;          /* DYNAMIC, IMPORTANCE: cap of a layer over the average. 0: 10 */
  double sharpness;           /* EPISODE. 0: 1.1 */
  double decay;               /* COSINE. 0: 0.9 */
  double head_floor_share;    /* ADA, LAVA: of the average, safe for every head. 0: 0.2; -1: none */
  int32_t floor_tokens;       /* IMPORTANCE: of every layer. 0: 32 */
  int32_t ripple_normalize_first; /* 1: weights are divided by their mean before they are clipped, not after */
  /* What the host knows. All of it is copied. */
  const double* layer_numbers;   /* [layers of the model], see the allocators; NULL: none */
  int32_t layer_number_count;
  int32_t layers_per_group;      /* GROUP where no profile groups layers: adjacent layers that decide together. 0: 4 */
  const int32_t* head_ranking;   /* [layers][voting_heads] query heads; NULL: all vote */
  int32_t head_ranking_count;    /* numbers */
  int32_t exempt_layer_count;
  const int32_t* exempt_layers;  /* that keep all tokens. NULL: those with a sliding window */
  const foldkv_position_range* pinned; /* tokens that are kept always, beyond the budget if need be */
  int64_t pinned_count;
} foldkv_eviction;

typedef struct foldkv_policy_info {
  uint32_t struct_size;
  uint32_t reserved;
  char name[32];
  char description[96];
} foldkv_policy_info;

FOLDKV_API int32_t foldkv_policy_count(void);
FOLDKV_API foldkv_status foldkv_policy_get(int32_t index, foldkv_policy_info* info, foldkv_error* error);
/* The parts of a named system with its authors' settings, in place of what the struct held. FOLDKV_E_ARGUMENT lists the
 * names when there is none of this name. */
FOLDKV_API foldkv_status foldkv_policy_find(const char* name, foldkv_eviction* eviction, foldkv_error* error);

/* Whole tokens in proportion to weights, each within its caps, that sum to total exactly: floors, then the largest remainders,
 * ties to the lower index. Where caps make that impossible all get their lower or upper ones. weights, lower, upper,
 * tokens: [count]. */
FOLDKV_API foldkv_status foldkv_budget_apportion(const double* weights, const int64_t* lower, const int64_t* upper,
                                                 int32_t count, int64_t total, int64_t* tokens, foldkv_error* error);

/* -------------------------------------------------------------------------------------- sequence */

/* Which mean is subtracted before projection. */
enum {
  FOLDKV_MEAN_DEFAULT = 0, /* SEQUENCE when the profile is centred, else none */
  FOLDKV_MEAN_SEQUENCE = 1, /* of the first run of tokens that is encoded; stored with the sequence */
  FOLDKV_MEAN_PROFILE = 2   /* of the calibration text */
};

/* What attention computes with. */
enum {
  FOLDKV_ARITHMETIC_EXACT = 1, /* numbers of 32 bits: outputs differ from exact ones by rounding only */
  FOLDKV_ARITHMETIC_FAST = 2   /* products of 8 or 16 bits where the machine is quicker with them and their error is far
                                  below that of the codes. Latents of more than 5.5 bits per coordinate, and those of
                                  codecs, are read exactly all the same */
};

typedef struct foldkv_sequence_options {
  uint32_t struct_size;
  int32_t dtype;         /* of exact keys and values. 0: FOLDKV_F16 */
  int32_t sink_tokens;   /* first tokens that stay exact. 0: 4; -1: none */
  int32_t recent_tokens; /* last tokens that stay exact. 0: 64; -1: none */
  int32_t fold_tokens;   /* generated tokens are folded in runs of this many, once recent_tokens plus one run
                            are exact. 0: 64; -1: never, generated tokens stay exact. The first run of a
                            sequence has 16 tokens at least, of a prompt too: fewer wait for more */
  int32_t mean;
  const char* plan;      /* name of one of the profile's plans; NULL: its first. Copied */
  const foldkv_eviction* eviction; /* NULL: every token stays. Copied */
  int32_t arithmetic;    /* 0: EXACT */
  int32_t reserved;
} foldkv_sequence_options;

/* profile NULL: every layer stays exact. options NULL: defaults. */
FOLDKV_API foldkv_status foldkv_sequence_create(foldkv_runtime* runtime, const foldkv_model* model,
                                                const foldkv_profile* profile,
                                                const foldkv_sequence_options* options,
                                                foldkv_sequence** sequence, foldkv_error* error);
FOLDKV_API void foldkv_sequence_release(foldkv_sequence* sequence);

typedef struct foldkv_estimate {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t sequence_bytes; /* held by the sequence at the end */
  uint64_t shared_bytes;   /* prepared profile and model, paid by the first sequence of that pair */
  uint64_t peak_bytes;     /* highest sequence_bytes + scratch on the way, shared_bytes not included. After a long life
                              free memory lies in pieces: leave a budget some percent above the sum of peaks */
} foldkv_estimate;

/* What a sequence would use after a prompt fed in one step and generated_tokens single steps with the same
 * input and output. It runs the allocation code itself in counting mode: the figures are those of the real run. */
typedef struct foldkv_step_options foldkv_step_options;
FOLDKV_API foldkv_status foldkv_sequence_estimate(const foldkv_runtime* runtime, const foldkv_model* model,
                                                  const foldkv_profile* profile,
                                                  const foldkv_sequence_options* options,
                                                  const foldkv_step_options* step_options, int64_t prompt_tokens,
                                                  int64_t generated_tokens, foldkv_estimate* estimate,
                                                  foldkv_error* error);

/* What caches shall take and cost; zero: no such wish. */
typedef struct foldkv_plan_wish {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t budget_bytes;   /* of all sequences and of what they share, while one of them is in a step */
  int64_t tokens;          /* of each prompt; 1 or more with a budget */
  int64_t sequences;       /* at the same time. 0: 1 */
  int64_t generated_tokens; /* of each, fed one by one after the prompt */
  double bytes_per_token;  /* of latents, at most */
  double ratio;            /* of 16-bit keys and values of the grouped layers to latents, at least; 1 or more */
  double highest_cost;     /* expected_cost of foldkv_plan_info, at most */
  const foldkv_sequence_options* sequence_options; /* their plan is NULL. NULL: defaults */
  const foldkv_step_options* step_options;         /* NULL: defaults */
  double highest_divergence; /* held_out_divergence of foldkv_plan_info, nats at most; plans that were not measured do
                                not fulfil it */
  double lowest_keep_ratio;  /* share of the prompt that must stay where the budget does not hold it whole: bits give way
                                to tokens until then. 0: the plan with the fewest bits gives the most tokens */
} foldkv_plan_wish;

typedef struct foldkv_plan_choice {
  uint32_t struct_size;
  int32_t plan;            /* index */
  char name[32];
  int64_t bytes_per_token;
  double expected_cost;
  int64_t tokens_kept;     /* of each prompt: all, or as many as the budget holds */
  double keep_ratio;       /* tokens_kept / tokens; below 1 the host feeds less, or, when the sequence options name an
                              eviction, sets its budget_tokens to tokens_kept */
  uint64_t sequence_bytes; /* one sequence between steps, at its largest, with tokens_kept; likewise below */
  uint64_t shared_bytes;   /* prepared profile and model, once */
  uint64_t total_bytes;    /* shared_bytes, all sequences but one at sequence_bytes, one in its largest step */
  uint64_t budget_bytes;   /* as wished */
  char explanation[512];   /* what was asked, what was chosen and why, what every plan would take */
} foldkv_plan_choice;

/* Chooses among the profile's plans: the one with the least expected cost that fulfils every wish, or with highest_cost
 * or highest_divergence the smallest that does. When the budget holds none that fulfils the others, the smallest of
 * these (or see lowest_keep_ratio) and the share of the prompt that fits (one token more does not): tokens and bits from
 * one budget, when the sequence options name an eviction, whose own budget is not looked at. Bytes are those of
 * foldkv_sequence_estimate.
 * FOLDKV_E_ARGUMENT when no plan fulfils the other wishes, naming the one that cannot be had and by how much;
 * FOLDKV_E_BUDGET when not even one token fits. */
FOLDKV_API foldkv_status foldkv_profile_choose_plan(const foldkv_runtime* runtime, const foldkv_model* model,
                                                    const foldkv_profile* profile, const foldkv_plan_wish* wish,
                                                    foldkv_plan_choice* choice, foldkv_error* error);

/* Compresses now what the options allow: all but sinks and recent tokens. Evicts what an eviction policy would evict at a
 * prompt's end; after it, when the policy evicts in generation. Nothing to do is no error. */
FOLDKV_API foldkv_status foldkv_sequence_compress(foldkv_sequence* sequence, foldkv_error* error);

typedef struct foldkv_sequence_stats {
  uint32_t struct_size;
  int32_t exact_layers;         /* layers in no group */
  int64_t tokens;               /* fed so far, evicted or not */
  int64_t exact_tokens;         /* in layers that belong to a group */
  int64_t latent_tokens;        /* of the layer group that holds the most */
  int64_t next_position;
  uint64_t bytes;               /* held by this sequence: the sum of its ledger */
  uint64_t full_cache_bytes;    /* of an uncompressed 16-bit cache of the same tokens */
  uint64_t latent_token_bytes;  /* codes, scales, coefficients of one token over all groups */
  uint64_t full_token_bytes;    /* 16-bit keys and values of one token over all layers */
  uint64_t grouped_token_bytes; /* the part of full_token_bytes in layers that belong to a group */
  foldkv_ledger ledger;         /* profile, model and scratch are zero here: they are not the sequence's own */
  uint64_t token_bytes;         /* of a compressed token over all layers: latent_token_bytes, and its exact keys and
                                   values in layers that are in no group and store their own */
  /* What compression loses of keys [FOLDKV_KEYS] and values [FOLDKV_VALUES], over the tokens encoded so far: squared
   * distances between rows and what their latents rebuild, summed over groups, divided by those between rows and the mean
   * that is subtracted. Measured on up to 64 tokens of each encoded run. Far above what is expected the text is unlike
   * the calibration's. 0: nothing encoded. */
  double energy_out_of_basis[2];
  double expected_energy_out_of_basis[2]; /* likewise, of the calibration text; 0: the profile does not know */
  int64_t held_head_tokens; /* tokens that KV heads hold, exact or latent, summed over layers and heads */
  int64_t fed_head_tokens;  /* likewise, had none been evicted */
  uint64_t shared_bytes;    /* the part of bytes in pages that other sequences hold too; the runtime's ledger counts them
                               once */
  int64_t lowest_truncation; /* the lowest position for foldkv_sequence_truncate: tokens were evicted before it */
  int32_t plan;              /* index among the profile's */
  int32_t spilled;           /* 1: in a file; the ledger then has what is in memory still */
} foldkv_sequence_stats;

FOLDKV_API foldkv_status foldkv_sequence_get_stats(const foldkv_sequence* sequence, foldkv_sequence_stats* stats,
                                                   foldkv_error* error);

/* Positions of the tokens that any layer holds, in rising order. *count receives their number; with positions NULL that is
 * all. */
FOLDKV_API foldkv_status foldkv_sequence_get_positions(const foldkv_sequence* sequence, int64_t* positions,
                                                       int64_t capacity, int64_t* count, foldkv_error* error);

/* Likewise of the tokens that one KV head of one layer holds, which an eviction policy has left it. */
FOLDKV_API foldkv_status foldkv_sequence_get_kept_positions(const foldkv_sequence* sequence, int32_t layer, int32_t kv_head,
                                                            int64_t* positions, int64_t capacity, int64_t* count,
                                                            foldkv_error* error);

typedef struct foldkv_rebuild_options {
  uint32_t struct_size;
  int32_t layer;
  int32_t side;    /* FOLDKV_KEYS or FOLDKV_VALUES */
  int32_t rotated; /* 1: keys turned to their positions; 0: before rotation */
  int64_t first_token; /* among those that are held */
  int64_t token_count; /* 0: all from first_token */
  int32_t one_head;    /* 1: of one KV head; 0: of all, which must hold the same tokens (FOLDKV_E_STATE) */
  int32_t kv_head;     /* which, with one_head */
} foldkv_rebuild_options;

/* Keys or values of one layer as attention sees them, into output [tokens, kv_heads, head_size] (one_head: 1 head), host
 * memory. */
FOLDKV_API foldkv_status foldkv_sequence_rebuild(const foldkv_sequence* sequence,
                                                 const foldkv_rebuild_options* options,
                                                 const foldkv_tensor* output, foldkv_error* error);

/* An independent sequence with the same tokens, positions, latents, means, correction and options. Either may be fed,
 * changed and released without the other. Both hold the same pages until one of them writes to a page, which then gets a
 * copy of its own: a fork takes no bytes of the budget, whatever the length, and only its list of pages on the host. A
 * prompt that many continue is fed once and forked for each. FOLDKV_E_STATE while the sequence is part of an open step. A
 * calibrator that is attached stays with the original alone. */
FOLDKV_API foldkv_status foldkv_sequence_fork(const foldkv_sequence* sequence, foldkv_sequence** fork,
                                              foldkv_error* error);

/* Forgets the tokens at this position and beyond, as if they had never been fed; the next token goes to this position
 * unless the host says otherwise. Takes time for what goes, not for what stays. 0 to next_position of the sequence.
 *  - Exact tokens that stay remain exact, latents remain latents: nothing is encoded or rebuilt. (Tokens of a codec whose
 *    runs of tokens share scales, KIVI, become exact again where a run is cut.)
 *  - A cut within the prompt opens it again: the next step without FOLDKV_FEED_CONTINUES compresses as at its end. (Under an
 *    eviction policy only when no latent is left.)
 *  - FOLDKV_E_STATE below lowest_truncation of the stats: an eviction chose among tokens up to there, and what it dropped
 *    is gone. To reject drafts under a policy that evicts in generation, feed them with FOLDKV_FEED_CONTINUES.
 *  - What an eviction policy has added up of attention keeps the part of the tokens that are forgotten.
 * Speculative decoding feeds k drafts in one step and truncates to those accepted; a prefix is used again under another
 * suffix by a fork that is truncated to it. FOLDKV_E_STATE while the sequence is part of an open step. */
FOLDKV_API foldkv_status foldkv_sequence_truncate(foldkv_sequence* sequence, int64_t position, foldkv_error* error);

typedef struct foldkv_replace_options {
  uint32_t struct_size;
  int32_t layer;
  int32_t side; /* FOLDKV_KEYS or FOLDKV_VALUES */
  int32_t reserved;
  int64_t first_token;
} foldkv_replace_options;

/* Writes keys (after their norm, before rotation) or values of exact tokens of one layer: the inverse of
 * foldkv_sequence_rebuild with rotated 0. rows: [tokens, kv_heads, head_size], host memory. Rows that a compressed
 * sequence rebuilds, put into an exact fork of the same text, show what that error costs in this layer and side alone.
 * FOLDKV_E_STATE where a token is a latent, FOLDKV_E_NUMERIC where a number is not finite in the sequence's dtype. */
FOLDKV_API foldkv_status foldkv_sequence_replace(foldkv_sequence* sequence, const foldkv_replace_options* options,
                                                 const foldkv_tensor* rows, foldkv_error* error);

typedef struct foldkv_perturb_options {
  uint32_t struct_size;
  int32_t layer;
  int32_t keys;        /* 0: values; 1: keys before rotation */
  int32_t reserved;
  double scale;        /* above 0: length of the noise in each channel against the length of the head's vector. RippleKV
                          gives no number; 0.01 to 0.1 keeps to small changes */
  uint64_t seed;
  int64_t example;     /* 0 to 2^32 - 1: the number of the text, so that each has noise of its own */
  int64_t first_token;
  int64_t token_count; /* 0: from first_token on all that the options keep neither as sinks nor as recent tokens;
                          else these tokens, whatever they are */
} foldkv_perturb_options;

/* RippleKV's perturbation of one layer: x += scale * |x| * e for the vector x of every head and token, e standard
 * normal in each channel. e is a function of seed, example, layer, side, head, position and channel (Philox4x32-10), so
 * that order, pieces and device do not matter. Exact tokens only (FOLDKV_E_STATE; also when there is no token to
 * perturb); FOLDKV_E_NUMERIC when a number leaves the sequence's dtype. Fork the sequence first: there is no way
 * back. */
FOLDKV_API foldkv_status foldkv_sequence_perturb(foldkv_sequence* sequence, const foldkv_perturb_options* options,
                                                 foldkv_error* error);

/* Re-encodes the latents under another plan of the profile, as a rule a smaller one, from what they rebuild. Means, bases
 * and exact tokens stay; the error of the old plan stays too, so the result is a little worse than the new plan's own.
 * NULL: the profile's first plan. Needs room for the new pages beside the old ones: FOLDKV_E_BUDGET says how much.
 * FOLDKV_E_UNSUPPORTED for codecs without plans. */
FOLDKV_API foldkv_status foldkv_sequence_set_plan(foldkv_sequence* sequence, const char* plan, foldkv_error* error);

/* Writes the sequence's pages to a file in the runtime's spill directory and gives them back. Pages that other sequences
 * hold too stay in memory. The next call that needs the sequence brings it back (FOLDKV_E_BUDGET when it does not fit,
 * FOLDKV_E_CORRUPT when the file's bytes are not those written), and it stays in memory even if that call then fails.
 * FOLDKV_E_STATE without a spill directory, or while the sequence is in use. Spilling a spilled sequence does nothing. */
FOLDKV_API foldkv_status foldkv_sequence_spill(foldkv_sequence* sequence, foldkv_error* error);

/* What each way to free memory would bring, in bytes of the budget. Of pages shared with other sequences nothing. */
typedef struct foldkv_reclaimable {
  uint32_t struct_size;
  int32_t smallest_plan;   /* index of the plan with the fewest bytes per token */
  uint64_t release;        /* foldkv_sequence_release */
  uint64_t spill;          /* foldkv_sequence_spill */
  uint64_t compress;       /* foldkv_sequence_compress, as an estimate */
  uint64_t plan;           /* foldkv_sequence_set_plan to the smallest plan */
  uint64_t plan_room;      /* that must be free to do so */
} foldkv_reclaimable;

FOLDKV_API foldkv_status foldkv_sequence_get_reclaimable(const foldkv_sequence* sequence, foldkv_reclaimable* reclaimable,
                                                         foldkv_error* error);

/* A description of the sequence for reports of faults, in lines of text: options, counts, bytes, the runs of positions of
 * every layer. No key, value or token is in it. *size receives the bytes needed, the final 0 included; with text NULL that
 * is all. */
FOLDKV_API foldkv_status foldkv_sequence_describe(const foldkv_sequence* sequence, char* text, size_t capacity,
                                                  size_t* size, foldkv_error* error);

/* -------------------------------------------------------------------------------------- snapshots */

/* A snapshot holds one or more sequences of one model and one profile: everything that changes what they answer (tokens,
 * positions, codes, means, options, what eviction policies remember), with checksums, and fingerprints of model, profile
 * and plan. Sequences saved together share pages in it as they do in memory. It is read by every backend, on every
 * little-endian machine, and by every later version of the library; each decodes the same values. Threads, device and
 * budget are not part of it. */

/* Takes or gives size bytes. Anything but 0 stops the call, which fails with FOLDKV_E_FILE and that native_code. */
typedef int32_t (*foldkv_write)(void* context, const void* bytes, size_t size);
typedef int32_t (*foldkv_read)(void* context, void* bytes, size_t size);

typedef struct foldkv_save_options {
  uint32_t struct_size;
  int32_t compression;   /* of pages, by zstd: level 1 to 19. 0: none. Codes are dense already; exact tokens shrink a little */
  const void* note;      /* bytes of the host that belong to the snapshot (its tokens, say); NULL: none */
  size_t note_size;      /* up to 16 MiB */
  const int32_t* cancel; /* the call ends with FOLDKV_E_CANCELLED soon after this becomes non-zero; NULL: never */
} foldkv_save_options;

/* Writes a snapshot piece by piece, in memory for one page. The sequences may be read by others meanwhile, not changed
 * (FOLDKV_E_STATE while one is part of an open step). options NULL: defaults. */
FOLDKV_API foldkv_status foldkv_sequences_save(const foldkv_sequence* const* sequences, int32_t sequence_count,
                                               const foldkv_save_options* options, foldkv_write write, void* context,
                                               foldkv_error* error);
/* To a file: written under another name in the same folder, forced to the disk, then renamed, so that at every moment the
 * path names the whole old file or the whole new one. */
FOLDKV_API foldkv_status foldkv_sequences_save_file(const foldkv_sequence* const* sequences, int32_t sequence_count,
                                                    const foldkv_save_options* options, const char* path,
                                                    foldkv_error* error);
/* To a buffer. *size receives the bytes needed; with buffer NULL that is all that happens. */
FOLDKV_API foldkv_status foldkv_sequence_save(const foldkv_sequence* sequence, const foldkv_save_options* options,
                                              void* buffer, size_t capacity, size_t* size, foldkv_error* error);

typedef struct foldkv_restore_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* plan;      /* the plan that the sequences must have been saved under. NULL: any */
  const int32_t* cancel; /* as in foldkv_save_options */
} foldkv_restore_options;

/* Makes the snapshot's sequences anew: sequences[0 .. *sequence_count - 1], which the caller releases. All of it is
 * verified before any is handed out. FOLDKV_E_CORRUPT when a byte is not as it was written, FOLDKV_E_MISMATCH naming
 * "model", "profile" or "options.plan" when it was made for another one, FOLDKV_E_VERSION when it comes from a newer
 * library, FOLDKV_E_ARGUMENT "capacity" when it holds more sequences. profile: as when they were created. options NULL:
 * defaults. */
FOLDKV_API foldkv_status foldkv_sequences_restore(foldkv_runtime* runtime, const foldkv_model* model,
                                                  const foldkv_profile* profile, const foldkv_restore_options* options,
                                                  foldkv_read read, void* context, foldkv_sequence** sequences,
                                                  int32_t capacity, int32_t* sequence_count, foldkv_error* error);
FOLDKV_API foldkv_status foldkv_sequences_restore_file(foldkv_runtime* runtime, const foldkv_model* model,
                                                       const foldkv_profile* profile,
                                                       const foldkv_restore_options* options, const char* path,
                                                       foldkv_sequence** sequences, int32_t capacity,
                                                       int32_t* sequence_count, foldkv_error* error);
/* From a buffer that holds one sequence, and nothing else. */
FOLDKV_API foldkv_status foldkv_sequence_restore(foldkv_runtime* runtime, const foldkv_model* model,
                                                 const foldkv_profile* profile, const foldkv_restore_options* options,
                                                 const void* bytes, size_t size, foldkv_sequence** sequence,
                                                 foldkv_error* error);

typedef struct foldkv_snapshot_info {
  uint32_t struct_size;
  int32_t sequence_count;
  uint64_t model_fingerprint;
  uint64_t profile_fingerprint; /* of the bases; 0: saved without a profile */
  uint64_t page_bytes;          /* what its pages take in memory */
  uint64_t note_size;
  int64_t tokens;               /* of the first sequence, fed */
  int64_t next_position;        /* likewise */
  char model_name[128];
  char plan[32];                /* of the first sequence */
  char made_by[64];             /* library and version */
} foldkv_snapshot_info;

/* Reads and verifies the part before the pages. note: NULL, or room for note_size bytes. */
FOLDKV_API foldkv_status foldkv_snapshot_inspect(foldkv_read read, void* context, foldkv_snapshot_info* info, void* note,
                                                 size_t note_capacity, foldkv_error* error);

/* ------------------------------------------------------------------------------------------ step */

typedef struct foldkv_step foldkv_step;

enum {
  /* More of the same prompt follows: keep all exact at commit. Without it a commit that leaves more exact
   * tokens than the options keep compresses them. A prompt fed in pieces with this flag on all but the last
   * gives what the prompt fed whole gives. */
  FOLDKV_FEED_CONTINUES = 1u
};

typedef struct foldkv_feed {
  uint32_t struct_size;
  uint32_t flags;
  foldkv_sequence* sequence;
  int64_t token_count;      /* 1 or more */
  const int64_t* positions; /* [token_count], rising, beyond those of the sequence; NULL: the next ones.
                               Below 2^31. Copied */
} foldkv_feed;

enum { FOLDKV_INPUT_DEFAULT = 0, FOLDKV_INPUT_HIDDEN = 1, FOLDKV_INPUT_QKV = 2 };
enum { FOLDKV_OUTPUT_DEFAULT = 0, FOLDKV_OUTPUT_CONTEXT = 1, FOLDKV_OUTPUT_PROJECTED = 2 };

struct foldkv_step_options {
  uint32_t struct_size;
  int32_t input;  /* default: hidden states when the model has weights, else q, k, v */
  int32_t output; /* default: context */
  int32_t reserved;
  const int32_t* cancel; /* foldkv_step_attend and _commit end with FOLDKV_E_CANCELLED soon after this becomes non-zero;
                            the step may be tried further or released. Borrowed until then. NULL: never */
};

/* Reserves everything that the tokens can need in all layers, compression at commit included, or fails with
 * FOLDKV_E_BUDGET and nothing has changed. A sequence appears once. options NULL: defaults. */
FOLDKV_API foldkv_status foldkv_step_begin(foldkv_runtime* runtime, const foldkv_feed* feeds, int32_t feed_count,
                                           const foldkv_step_options* options, foldkv_step** step,
                                           foldkv_error* error);

/* Rows are the tokens of all feeds, one feed after the other. */
typedef struct foldkv_attend {
  uint32_t struct_size;
  uint32_t reserved;
  foldkv_tensor hidden; /* [rows, hidden_size], after the layer's input norm; or */
  foldkv_tensor query;  /* [rows, query_heads, head_size], as projected: biases in, norms and rotation not; and */
  foldkv_tensor key;    /* [rows, kv_heads, head_size], likewise */
  foldkv_tensor value;  /* [rows, kv_heads, head_size] */
  foldkv_tensor output; /* context [rows, query_heads, head_size] or projected [rows, hidden_size]; written */
  foldkv_tensor log_sum_exp; /* [rows, query_heads], FOLDKV_F32; absent: not wanted; written */
  void* stream;         /* of the device; NULL: its default */
} foldkv_attend;

/* Layers in rising order, each once. After a failure the same layer may be tried again. Allocates nothing. */
FOLDKV_API foldkv_status foldkv_step_attend(foldkv_step* step, int32_t layer, const foldkv_attend* attend,
                                            foldkv_error* error);
/* Publishes the tokens, after all layers. After a failure it may be tried again, but for one: when a device fails while
 * tokens are moved in place (FOLDKV_E_BACKEND), which only a device with memory of its own can, the sequences of the step
 * have lost their tokens. All further calls on them give FOLDKV_E_STATE, but statistics and release. The same holds for
 * compress, truncate, replace and perturb. */
FOLDKV_API foldkv_status foldkv_step_commit(foldkv_step* step, foldkv_error* error);
/* A step that was not committed is rolled back: its sequences are as before step_begin. */
FOLDKV_API void foldkv_step_release(foldkv_step* step);

#ifdef __cplusplus
}
#endif

#endif /* FOLDKV_FOLDKV_H_ */
