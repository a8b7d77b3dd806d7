#include "samples/lab/llama2c_file.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "samples/lab/byte_reader.h"
#include "samples/lab/checked_arithmetic.h"

namespace foldkv_lab {
namespace {

absl::StatusOr<int64_t> read_size(ByteReader& reader, absl::string_view name) {
  LAB_ASSIGN_OR_RETURN(const int32_t size, reader.read<int32_t>(name));
  if (size <= 0) return absl::DataLossError(absl::StrCat(name, " is ", size, ", expected at least 1"));
  return size;
}

// Fills the sizes. A negative vocabulary size says that the classifier has weights of its own.
absl::Status read_header(ByteReader& reader, Llama2cFile* file, bool* own_classifier) {
  LAB_ASSIGN_OR_RETURN(file->hidden_size, read_size(reader, "hidden size"));
  LAB_ASSIGN_OR_RETURN(file->feed_forward_size, read_size(reader, "feed-forward size"));
  LAB_ASSIGN_OR_RETURN(file->layer_count, read_size(reader, "layer count"));
  LAB_ASSIGN_OR_RETURN(file->query_heads, read_size(reader, "query heads"));
  LAB_ASSIGN_OR_RETURN(file->kv_heads, read_size(reader, "kv heads"));
  LAB_ASSIGN_OR_RETURN(const int32_t vocabulary, reader.read<int32_t>("vocabulary size"));
  if (vocabulary == 0) return absl::DataLossError("vocabulary size is 0");
  *own_classifier = vocabulary < 0;
  file->vocabulary_size = vocabulary < 0 ? -int64_t{vocabulary} : vocabulary;
  LAB_ASSIGN_OR_RETURN(file->context_length, read_size(reader, "context length"));
  if (file->hidden_size % file->query_heads != 0) {
    return absl::DataLossError(
        absl::StrCat("hidden size ", file->hidden_size, " is not a multiple of ", file->query_heads, " query heads"));
  }
  if (file->kv_heads > file->query_heads || file->query_heads % file->kv_heads != 0) {
    return absl::DataLossError(
        absl::StrCat(file->query_heads, " query heads do not share ", file->kv_heads, " kv heads evenly"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<const std::byte>> read_floats(ByteReader& reader, absl::string_view name,
                                                       std::initializer_list<int64_t> shape) {
  uint64_t bytes = sizeof(float);
  for (const int64_t size : shape) {
    LAB_ASSIGN_OR_RETURN(bytes, checked_product({bytes, static_cast<uint64_t>(size)}, name));
  }
  return reader.read_bytes(bytes, name);
}

}  // namespace

absl::StatusOr<Llama2cFile> Llama2cFile::parse(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  Llama2cFile file;
  bool own_classifier = false;
  LAB_RETURN_IF_ERROR(read_header(reader, &file, &own_classifier));
  const int64_t layers = file.layer_count;
  const int64_t hidden = file.hidden_size;
  const int64_t feed_forward = file.feed_forward_size;
  const int64_t kv_width = file.kv_heads * file.head_size();
  const int64_t vocabulary = file.vocabulary_size;
  LAB_ASSIGN_OR_RETURN(file.embedding, read_floats(reader, "embedding", {vocabulary, hidden}));
  LAB_ASSIGN_OR_RETURN(file.attention_norm, read_floats(reader, "attention norms", {layers, hidden}));
  LAB_ASSIGN_OR_RETURN(file.query, read_floats(reader, "query weights", {layers, hidden, hidden}));
  LAB_ASSIGN_OR_RETURN(file.key, read_floats(reader, "key weights", {layers, kv_width, hidden}));
  LAB_ASSIGN_OR_RETURN(file.value, read_floats(reader, "value weights", {layers, kv_width, hidden}));
  LAB_ASSIGN_OR_RETURN(file.attention_output, read_floats(reader, "output weights", {layers, hidden, hidden}));
  LAB_ASSIGN_OR_RETURN(file.feed_forward_norm, read_floats(reader, "feed-forward norms", {layers, hidden}));
  LAB_ASSIGN_OR_RETURN(file.gate, read_floats(reader, "gate weights", {layers, feed_forward, hidden}));
  LAB_ASSIGN_OR_RETURN(file.down, read_floats(reader, "down weights", {layers, hidden, feed_forward}));
  LAB_ASSIGN_OR_RETURN(file.up, read_floats(reader, "up weights", {layers, feed_forward, hidden}));
  LAB_ASSIGN_OR_RETURN(file.final_norm, read_floats(reader, "final norm", {hidden}));
  // Tables of cosines and sines that newer readers compute themselves.
  LAB_RETURN_IF_ERROR(read_floats(reader, "rotation tables", {2, file.context_length, file.head_size() / 2}).status());
  if (own_classifier) {
    LAB_ASSIGN_OR_RETURN(file.classifier, read_floats(reader, "classifier", {vocabulary, hidden}));
  }
  if (reader.remaining() != 0) {
    return absl::DataLossError(
        absl::StrCat("the file has ", bytes.size(), " bytes, its header asks for ", reader.position()));
  }
  return file;
}

}  // namespace foldkv_lab
