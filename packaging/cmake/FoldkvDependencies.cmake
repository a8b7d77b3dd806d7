# Libraries of others. Each is linked PRIVATE: none appears in a public header or in the exported targets of the
# shared library.

include(GNUInstallDirs)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(FlatBuffers REQUIRED)
find_program(FOLDKV_FLATC NAMES flatc REQUIRED DOC "The FlatBuffers compiler")
find_path(FOLDKV_XXHASH_INCLUDE xxhash.h REQUIRED DOC "Folder of xxhash.h")
if(FOLDKV_CPU_ONEDNN)
  find_package(OneDNN 2.6 REQUIRED)
endif()
if(FOLDKV_ZSTD)
  find_package(Zstd REQUIRED)
endif()

# Header-only use (XXH_INLINE_ALL); there is nothing to link.
add_library(foldkv_xxhash INTERFACE)
target_include_directories(foldkv_xxhash SYSTEM INTERFACE "${FOLDKV_XXHASH_INCLUDE}")

# The part of Abseil that the library uses; what of it is unused costs nothing (--as-needed).
set(FOLDKV_ABSL absl::status absl::statusor absl::strings absl::str_format absl::span absl::cleanup absl::memory
    absl::flat_hash_map absl::flat_hash_set absl::btree absl::inlined_vector absl::random_random absl::synchronization
    absl::function_ref absl::core_headers)

if(FOLDKV_TESTS)
  find_package(doctest REQUIRED)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
endif()
if(FOLDKV_SAMPLES OR FOLDKV_TESTS OR FOLDKV_BENCHMARKS)
  find_package(nlohmann_json REQUIRED)
  find_package(CLI11 REQUIRED)
endif()
if(FOLDKV_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
