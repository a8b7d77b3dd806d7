// A GGUF file from anywhere, as the lab reads it: header, tensors, the model that they make.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samples/lab/dequantize.h"
#include "samples/lab/gguf_file.h"
#include "samples/lab/model_from_gguf.h"
#include "samples/lab/tokenizer_from_gguf.h"
#include "tests/fuzz/oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foldkv_lab;
  using foldkv::fuzz::must;
  const auto file = GgufFile::parse(std::as_bytes(std::span(data, size)));
  if (!file.ok()) return 0;
  uint64_t bytes = 0;
  for (const GgufTensor& tensor : file->tensors()) {
    must(file->find_tensor(tensor.name) == &tensor, "a tensor is found by its name");
    bytes += tensor.bytes.size();
    must(bytes <= size, "tensors do not overlap");
    std::vector<float> numbers(tensor.element_count);
    must(dequantize(tensor.type, tensor.bytes, numbers).ok(), "the bytes of a tensor fit its shape");
  }
  const auto model = model_from_gguf(*file);
  const auto tokenizer = tokenizer_from_gguf(*file);
  if (model.ok() || tokenizer.ok()) ++foldkv::fuzz::accepted;
  return 0;
}
