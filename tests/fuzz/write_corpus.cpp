// Writes the corpus of all targets: small files that get past every check, one for each thing that a format can hold.
//
// usage: fuzz_write_corpus <folder>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "foldkv/foldkv.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/world.h"
#include "tests/samples/lab/gguf_builder.h"

namespace foldkv::fuzz {
namespace {

namespace lab = foldkv_lab;

// Of one target.
class Folder {
 public:
  explicit Folder(const std::filesystem::path& path) : path_(path) { std::filesystem::create_directories(path); }

  void write(const std::string& name, const void* bytes, size_t size) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
    must(file.good(), "the file can be written");
  }

 private:
  std::filesystem::path path_;
};

void save(const Folder& folder, const std::string& name, const foldkv_profile* profile) {
  size_t size = 0;
  must(foldkv_profile_save(profile, nullptr, 0, &size, nullptr) == FOLDKV_OK, "the profile's size is known");
  std::vector<uint8_t> bytes(size);
  must(foldkv_profile_save(profile, bytes.data(), size, &size, nullptr) == FOLDKV_OK, "the profile is written");
  folder.write(name, bytes.data(), size);
}

void save(const Folder& folder, const std::string& name, const foldkv_calibrator* calibrator) {
  size_t size = 0;
  must(foldkv_calibrator_save(calibrator, nullptr, 0, &size, nullptr) == FOLDKV_OK, "the file's size is known");
  std::vector<uint8_t> bytes(size);
  must(foldkv_calibrator_save(calibrator, bytes.data(), size, &size, nullptr) == FOLDKV_OK, "the file is written");
  folder.write(name, bytes.data(), size);
}

foldkv_calibrator* calibrated(int64_t tokens, bool with_gradients) {
  auto options = sized<foldkv_calibrator_options>();
  options.layers_per_group = 2;
  foldkv_calibrator* calibrator = nullptr;
  must(foldkv_calibrator_create(runtime(), model(), &options, &calibrator, nullptr) == FOLDKV_OK, "a calibrator");
  std::vector<std::vector<float>> numbers;
  std::vector<foldkv_tensor> keys, values;
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    for (auto* side : {&keys, &values}) {
      numbers.push_back(some_numbers(tokens * kKeyWidth, numbers.size()));
      side->push_back(rows_of(numbers.back(), tokens, kKvHeads));
    }
  }
  must(foldkv_calibrator_observe(calibrator, keys.data(), values.data(), kLayers, 0, nullptr) == FOLDKV_OK, "rows");
  if (with_gradients) {
    must(foldkv_calibrator_observe_gradients(calibrator, keys.data(), values.data(), kLayers, 0, nullptr) == FOLDKV_OK,
         "gradients");
  }
  return calibrator;
}

foldkv_profile* solved(const foldkv_calibrator* calibrator, bool use_metric) {
  auto options = sized<foldkv_solve_options>();
  options.latent_width = use_metric ? 16 : 8;
  options.rotate = use_metric ? 1 : 0;
  options.use_metric = use_metric ? 1 : 0;
  options.scale_group = 4;
  options.correction_rank = use_metric ? 0 : 2;
  foldkv_profile* profile = nullptr;
  must(foldkv_calibrator_solve(calibrator, &options, &profile, nullptr) == FOLDKV_OK, "a profile");
  return profile;
}

foldkv_profile* planned(const foldkv_profile* profile) {
  foldkv_plan_options plans[2] = {sized<foldkv_plan_options>(), sized<foldkv_plan_options>()};
  plans[0].name = "four";
  plans[0].ratio = 4.0;
  plans[1].name = "eight";
  plans[1].ratio = 8.0;
  foldkv_profile *made = nullptr, *recorded = nullptr;
  must(foldkv_profile_plan(profile, plans, 2, &made, nullptr) == FOLDKV_OK, "plans");
  must(foldkv_profile_record_divergence(made, "eight", 0.25, 100, &recorded, nullptr) == FOLDKV_OK, "a divergence");
  foldkv_profile_release(made);
  return recorded;
}

foldkv_profile* with_sensitivity(const foldkv_profile* profile) {
  foldkv_sensitivity* sensitivity = nullptr;
  must(foldkv_sensitivity_create(model(), &sensitivity, nullptr) == FOLDKV_OK, "sensitivities");
  std::vector<float> even(4), uneven = some_numbers(4, 9);
  foldkv_tensor a = rows_of(even, 1, 1), b = rows_of(uneven, 1, 1);
  a.rank = b.rank = 2;
  a.shape[1] = b.shape[1] = 4;
  must(foldkv_sensitivity_add(sensitivity, 1, FOLDKV_VALUES, &a, &b, nullptr) == FOLDKV_OK, "an example");
  auto source = sized<foldkv_sensitivity_source>();
  source.scale = 0.1;
  std::snprintf(source.text, sizeof source.text, "a text");
  foldkv_profile* made = nullptr;
  must(foldkv_profile_with_sensitivity(profile, sensitivity, &source, &made, nullptr) == FOLDKV_OK, "a profile");
  foldkv_sensitivity_release(sensitivity);
  return made;
}

void write_codecs(const Folder& folder) {
  const int32_t sources[kLayers] = {0, 0, 2, 2};
  const char* const names[] = {"integer", "kivi", "xkv", "minicache", "kvsharer"};
  for (int32_t codec = FOLDKV_CODEC_INTEGER; codec <= FOLDKV_CODEC_KVSHARER; ++codec) {
    auto options = sized<foldkv_codec_options>();
    options.codec = codec;
    if (codec == FOLDKV_CODEC_KVSHARER) options.sources = sources;
    foldkv_profile* profile = nullptr;
    must(foldkv_profile_from_codec(model(), &options, &profile, nullptr) == FOLDKV_OK, "a codec's profile");
    save(folder, names[codec - 1], profile);
    foldkv_profile_release(profile);
  }
}

void write_profiles_and_calibrations(const std::filesystem::path& path) {
  const Folder profiles(path / "profile_file"), calibrations(path / "calibration_file");
  write_codecs(profiles);
  // Sums are formed of blocks of 256 rows; what is left waits. The first 4 tokens are left out.
  foldkv_calibrator* const few = calibrated(12, true);
  foldkv_calibrator* const plain = calibrated(4 + 256 + 3, false);
  foldkv_calibrator* const metric = calibrated(4 + 256 + 2, true);
  save(calibrations, "few", few);
  save(calibrations, "rows", plain);
  save(calibrations, "gradients", metric);
  foldkv_profile* const narrow = solved(plain, false);
  foldkv_profile* const wide = solved(metric, true);
  foldkv_profile* const plans = planned(wide);
  foldkv_profile* const sensitive = with_sensitivity(narrow);
  save(profiles, "correction_and_sensitivity", sensitive);
  save(profiles, "plans", plans);
  for (foldkv_profile* profile : {narrow, wide, plans, sensitive}) foldkv_profile_release(profile);
  foldkv_calibrator_release(few);
  foldkv_calibrator_release(plain);
  foldkv_calibrator_release(metric);
}

void add_shape(lab::test::GgufBuilder& file, const std::string& architecture) {
  const std::string of = architecture + ".";
  file.add_text("general.architecture", architecture);
  file.add_u32(of + "block_count", 1);
  file.add_u32(of + "embedding_length", 8);
  file.add_u32(of + "feed_forward_length", 8);
  file.add_u32(of + "attention.head_count", 2);
  file.add_u32(of + "attention.head_count_kv", 1);
  file.add_u32(of + "context_length", 64);
  file.add_f32(of + "attention.layer_norm_rms_epsilon", 1e-5f);
  file.add_f32(of + "rope.freq_base", 10000.0f);
}

void add_weights(lab::test::GgufBuilder& file, bool with_biases) {
  const auto add = [&](const std::string& name, const std::vector<uint64_t>& shape) {
    const uint64_t count = shape.size() == 1 ? shape[0] : shape[0] * shape[1];
    file.add_floats(name, shape, some_numbers(static_cast<int64_t>(count), count));
  };
  add("token_embd.weight", {8, 5});
  add("output_norm.weight", {8});
  const std::string block = "blk.0.";
  add(block + "attn_norm.weight", {8});
  add(block + "attn_q.weight", {8, 8});
  add(block + "attn_k.weight", {8, 4});
  add(block + "attn_v.weight", {8, 4});
  if (with_biases) {
    add(block + "attn_q.bias", {8});
    add(block + "attn_k.bias", {4});
    add(block + "attn_v.bias", {4});
  }
  add(block + "attn_output.weight", {8, 8});
  add(block + "ffn_norm.weight", {8});
  add(block + "ffn_gate.weight", {8, 8});
  add(block + "ffn_up.weight", {8, 8});
  add(block + "ffn_down.weight", {8, 8});
}

void add_byte_pairs(lab::test::GgufBuilder& file) {
  file.add_text("tokenizer.ggml.model", "gpt2");
  file.add_texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<|end|>", "\xc4\xa0"});
  file.add_texts("tokenizer.ggml.merges", {"a b"});
  file.add_i32s("tokenizer.ggml.token_type", {1, 1, 1, 3, 1});
  file.add_u32("tokenizer.ggml.eos_token_id", 3);
}

void add_scores(lab::test::GgufBuilder& file) {
  file.add_text("tokenizer.ggml.model", "llama");
  file.add_texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x41>", "\xe2\x96\x81t", "t", "\xe2\x96\x81"});
  file.add_f32s("tokenizer.ggml.scores", {0, 0, 0, 0, -1, -2, -3});
  file.add_i32s("tokenizer.ggml.token_type", {2, 3, 3, 6, 1, 1, 1});
  file.add_u32("tokenizer.ggml.bos_token_id", 1);
}

// Every number format, one block each.
void add_formats(lab::test::GgufBuilder& file) {
  for (uint32_t code = 0; code < 64; ++code) {
    const lab::TensorTypeInfo* info = lab::find_tensor_type(code);
    if (info == nullptr) continue;
    std::vector<std::byte> block(info->block_bytes);
    for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(37 * i);
    file.add_tensor(absl::StrCat("t", code), {info->block_elements}, info->type, block);
  }
}

void write_lab_files(const std::filesystem::path& path) {
  const Folder files(path / "gguf_file"), tokenizers(path / "tokenizer");
  const auto write = [&](const Folder& folder, const std::string& name, lab::test::GgufBuilder& builder,
                         const std::string& before) {
    std::string bytes = before;
    for (const std::byte byte : builder.build()) bytes.push_back(static_cast<char>(byte));
    folder.write(name, bytes.data(), bytes.size());
  };
  lab::test::GgufBuilder llama, qwen2, formats, byte_pairs, scores;
  add_shape(llama, "llama");
  add_scores(llama);
  add_weights(llama, false);
  write(files, "llama", llama, "");
  add_shape(qwen2, "qwen2");
  add_byte_pairs(qwen2);
  add_weights(qwen2, true);
  write(files, "qwen2", qwen2, "");
  add_byte_pairs(formats);
  add_formats(formats);
  write(files, "formats", formats, "");
  add_byte_pairs(byte_pairs);
  write(tokenizers, "byte_pairs", byte_pairs,
        std::string("\0\x06"
                    "ab a b",
                    8));
  add_scores(scores);
  write(tokenizers, "scores", scores,
        std::string("\0\x04"
                    "t tA",
                    6));
}

// llama2.c's format: longest length, then score, length and bytes of each token.
void write_llama2c(const std::filesystem::path& path) {
  std::vector<std::byte> bytes;
  lab::test::GgufBuilder::put(&bytes, int32_t{6});
  for (const std::string text : {"<unk>", "<s>", "</s>", "<0x41>", " ", "t", " t"}) {
    lab::test::GgufBuilder::put(&bytes, -static_cast<float>(text.size()));
    lab::test::GgufBuilder::put(&bytes, static_cast<int32_t>(text.size()));
    for (const char letter : text) bytes.push_back(static_cast<std::byte>(letter));
  }
  std::string input(
      "\x07\x03"
      "tAt",
      5);
  for (const std::byte byte : bytes) input.push_back(static_cast<char>(byte));
  Folder(path / "tokenizer").write("llama2c", input.data(), input.size());
}

foldkv_sequence* new_sequence(const foldkv_profile* profile, const char* policy) {
  auto options = sized<foldkv_sequence_options>();
  options.sink_tokens = 2;
  options.recent_tokens = 6;
  options.fold_tokens = 32;
  auto eviction = sized<foldkv_eviction>();
  if (policy != nullptr) {
    must(foldkv_policy_find(policy, &eviction, nullptr) == FOLDKV_OK, "there is such a policy");
    eviction.budget_tokens = 20;
    eviction.keep_ratio = 0.0;
    if (eviction.window_tokens > 0) eviction.window_tokens = 4;
    options.eviction = &eviction;
  }
  foldkv_sequence* sequence = nullptr;
  must(foldkv_sequence_create(runtime(), model(), profile, &options, &sequence, nullptr) == FOLDKV_OK, "a sequence");
  return sequence;
}

void save(const Folder& folder, const std::string& name, const std::vector<foldkv_sequence*>& sequences,
          int32_t compression) {
  std::string bytes;
  auto options = sized<foldkv_save_options>();
  options.compression = compression;
  const foldkv_write write = [](void* context, const void* piece, size_t size) {
    static_cast<std::string*>(context)->append(static_cast<const char*>(piece), size);
    return 0;
  };
  must(foldkv_sequences_save(sequences.data(), static_cast<int32_t>(sequences.size()), &options, write, &bytes,
                             nullptr) == FOLDKV_OK,
       "a snapshot");
  folder.write(name, bytes.data(), bytes.size());
  for (foldkv_sequence* sequence : sequences) foldkv_sequence_release(sequence);
}

void write_snapshots(const std::filesystem::path& path) {
  const Folder folder(path / "snapshot_file");
  const char* const names[kSnapshotProfiles] = {"exact", "integer", "kivi", "xkv", "minicache"};
  for (int32_t index = 0; index < kSnapshotProfiles; ++index) {
    foldkv_sequence* const sequence = new_sequence(snapshot_profile(index), nullptr);
    must(feed(sequence, 42), "a prompt");
    foldkv_sequence* fork = nullptr;
    must(foldkv_sequence_fork(sequence, &fork, nullptr) == FOLDKV_OK, "a fork");
    must(feed(fork, 1), "a token");
    save(folder, names[index], {sequence, fork}, index == 0 ? 1 : 0);
  }
  for (const char* policy : {"snapkv", "h2o", "expected-attention", "streaming-llm-reindexed"}) {
    foldkv_sequence *const ended = new_sequence(nullptr, policy), *const open = new_sequence(nullptr, policy);
    must(feed(ended, 30) && feed(open, 25, FOLDKV_FEED_CONTINUES), "prompts");
    save(folder, policy, {ended, open}, 0);
  }
}

}  // namespace
}  // namespace foldkv::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s <folder>\n", argv[0]);
    return 2;
  }
  foldkv::fuzz::write_profiles_and_calibrations(argv[1]);
  foldkv::fuzz::write_snapshots(argv[1]);
  foldkv::fuzz::write_lab_files(argv[1]);
  foldkv::fuzz::write_llama2c(argv[1]);
  return 0;
}
