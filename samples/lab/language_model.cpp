#include "samples/lab/language_model.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "samples/lab/gguf_file.h"
#include "samples/lab/llama2c_file.h"
#include "samples/lab/mapped_file.h"
#include "samples/lab/model_from_gguf.h"
#include "samples/lab/model_from_llama2c.h"
#include "samples/lab/status_macros.h"
#include "samples/lab/tokenizer_from_gguf.h"
#include "samples/lab/tokenizer_from_llama2c.h"

namespace foldkv_lab {
namespace {

// FNV-1a over words of 8 bytes: tells files apart, protects from nothing.
uint64_t content_hash(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t start = 0; start < bytes.size(); start += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + start, std::min(sizeof(word), bytes.size() - start));
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

bool is_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
}

absl::StatusOr<std::string> find_llama2c_tokenizer(const std::string& model_path, int64_t vocabulary_size) {
  const std::filesystem::path folder = std::filesystem::path(model_path).parent_path();
  for (const std::string& name : {absl::StrCat("tok", vocabulary_size, ".bin"), std::string("tokenizer.bin")}) {
    std::error_code ignored;
    if (std::filesystem::exists(folder / name, ignored)) return (folder / name).string();
  }
  return absl::NotFoundError(absl::StrCat("no tok", vocabulary_size, ".bin or tokenizer.bin beside ", model_path,
                                          "; name the tokenizer with --tokenizer"));
}

absl::Status load_gguf(std::span<const std::byte> bytes, LanguageModel* result) {
  LAB_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::parse(bytes));
  LAB_ASSIGN_OR_RETURN(result->tokenizer, tokenizer_from_gguf(file));
  LAB_ASSIGN_OR_RETURN(result->model, model_from_gguf(file));
  return absl::OkStatus();
}

absl::Status load_llama2c(std::span<const std::byte> bytes, const std::string& path, std::string tokenizer_path,
                          LanguageModel* result) {
  LAB_ASSIGN_OR_RETURN(const Llama2cFile file, Llama2cFile::parse(bytes));
  if (tokenizer_path.empty()) {
    LAB_ASSIGN_OR_RETURN(tokenizer_path, find_llama2c_tokenizer(path, file.vocabulary_size));
  }
  LAB_ASSIGN_OR_RETURN(const MappedFile tokenizer_file, MappedFile::open(tokenizer_path));
  LAB_ASSIGN_OR_RETURN(result->tokenizer, tokenizer_from_llama2c(tokenizer_file.bytes(), file.vocabulary_size));
  LAB_ASSIGN_OR_RETURN(result->model, model_from_llama2c(file));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LanguageModel> load_language_model(const std::string& path, const std::string& tokenizer_path) {
  LAB_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  LanguageModel result;
  const absl::Status status = is_gguf(file.bytes()) ? load_gguf(file.bytes(), &result)
                                                    : load_llama2c(file.bytes(), path, tokenizer_path, &result);
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
  if (result.tokenizer->vocabulary_size() != result.model.shape.vocabulary_size) {
    return absl::DataLossError(absl::StrCat(path, ": the tokenizer has ", result.tokenizer->vocabulary_size(),
                                            " tokens, the model ", result.model.shape.vocabulary_size));
  }
  // The library keeps 127 bytes of a name; the hash must be among them.
  const std::string file_name = std::filesystem::path(path).filename().string().substr(0, 80);
  result.name = absl::StrFormat("%s %016x", file_name, content_hash(file.bytes()));
  return result;
}

}  // namespace foldkv_lab
