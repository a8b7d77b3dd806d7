#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/read_struct.h"
#include "abi/write_bytes.h"
#include "runtime/cache/snapshot/inspect_snapshot.h"
#include "runtime/cache/snapshot/restore_sequences.h"
#include "runtime/cache/snapshot/save_sequences.h"
#include "runtime/cache/snapshot/snapshot_file.h"
#include "runtime/cache/snapshot/snapshot_path.h"

namespace foldkv::abi {
namespace {

constexpr int32_t kHighestCompression = 19;

StatusOr<SaveOptions> read_save_options(const foldkv_save_options* source) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_save_options options, read_optional_struct(source, "options"));
  if (options.compression < 0 || options.compression > kHighestCompression) {
    return argument_error("options.compression",
                          absl::StrCat("is ", options.compression, ", expected 0 to ", kHighestCompression));
  }
  if (options.note_size > snapshot_file::kMostNoteBytes || (options.note == nullptr && options.note_size > 0)) {
    return argument_error("options.note_size", absl::StrCat("is ", options.note_size, ", expected 0 to ",
                                                            snapshot_file::kMostNoteBytes, ", and 0 without a note"));
  }
  SaveOptions result;
  result.made_by = absl::StrCat("FoldKV ", foldkv_version());
  result.compression = options.compression;
  result.note = {static_cast<const std::byte*>(options.note), options.note_size};
  result.cancellation = Cancellation(options.cancel);
  return result;
}

StatusOr<std::vector<std::shared_ptr<Sequence>>> read_sequences(const foldkv_sequence* const* sequences,
                                                                int32_t count) {
  if (count < 1) return argument_error("sequence_count", absl::StrCat("is ", count, ", expected 1 or more"));
  FOLDKV_RETURN_IF_ERROR(require(sequences, "sequences"));
  std::vector<std::shared_ptr<Sequence>> list;
  for (int32_t index = 0; index < count; ++index) {
    FOLDKV_RETURN_IF_ERROR(require(sequences[index], absl::StrCat("sequences[", index, "]")));
    list.push_back(sequences[index]->object);
  }
  return list;
}

Status save_to(const foldkv_sequence* const* sequences, int32_t count, const foldkv_save_options* options,
               foldkv_write write, void* context) {
  FOLDKV_ASSIGN_OR_RETURN(const auto list, read_sequences(sequences, count));
  FOLDKV_ASSIGN_OR_RETURN(const SaveOptions save, read_save_options(options));
  if (write == nullptr) return argument_error("write", "is NULL");
  return save_sequences(list, save, [&](std::span<const std::byte> bytes) {
    const int32_t code = write(context, bytes.data(), bytes.size());
    return code == 0 ? absl::OkStatus() : file_error(code, absl::StrCat("the host's write returned ", code));
  });
}

Status save_to_file(const foldkv_sequence* const* sequences, int32_t count, const foldkv_save_options* options,
                    const char* path) {
  FOLDKV_ASSIGN_OR_RETURN(const auto list, read_sequences(sequences, count));
  FOLDKV_ASSIGN_OR_RETURN(const SaveOptions save, read_save_options(options));
  FOLDKV_RETURN_IF_ERROR(require(path, "path"));
  return replace_file(path, [&](WriteBytes write) { return save_sequences(list, save, write); });
}

// Counts what does not fit, so that the size is known in any case.
Status save_to_buffer(const foldkv_sequence* sequence, const foldkv_save_options* options, void* buffer,
                      size_t capacity, size_t* size) {
  FOLDKV_RETURN_IF_ERROR(require(size, "size"));
  FOLDKV_ASSIGN_OR_RETURN(const auto list, read_sequences(&sequence, 1));
  FOLDKV_ASSIGN_OR_RETURN(const SaveOptions save, read_save_options(options));
  std::vector<std::byte> staged;
  size_t needed = 0;
  FOLDKV_RETURN_IF_ERROR(save_sequences(list, save, [&](std::span<const std::byte> bytes) {
    if (buffer != nullptr && needed + bytes.size() <= capacity) staged.insert(staged.end(), bytes.begin(), bytes.end());
    needed += bytes.size();
    return absl::OkStatus();
  }));
  if (buffer != nullptr && needed > capacity) {
    return argument_error("capacity", absl::StrCat("is ", capacity, ", expected ", needed, " or more"));
  }
  if (buffer != nullptr) std::memcpy(buffer, staged.data(), staged.size());
  *size = needed;
  return absl::OkStatus();
}

struct RestoreTarget {
  foldkv_runtime* runtime;
  const foldkv_model* model;
  const foldkv_profile* profile;
  const foldkv_restore_options* options;
  foldkv_sequence** sequences;
  int32_t capacity;
  int32_t* count;
};

Status check_target(const RestoreTarget& target) {
  FOLDKV_RETURN_IF_ERROR(require(target.runtime, "runtime"));
  FOLDKV_RETURN_IF_ERROR(require(target.model, "model"));
  FOLDKV_RETURN_IF_ERROR(require(target.sequences, "sequences"));
  FOLDKV_RETURN_IF_ERROR(require(target.count, "sequence_count"));
  if (target.capacity >= 1) return absl::OkStatus();
  return argument_error("capacity", absl::StrCat("is ", target.capacity, ", expected 1 or more"));
}

StatusOr<std::vector<std::shared_ptr<Sequence>>> restore(const RestoreTarget& target, ReadBytes read) {
  FOLDKV_ASSIGN_OR_RETURN(const foldkv_restore_options source, read_optional_struct(target.options, "options"));
  if (source.reserved != 0) return argument_error("options.reserved", "is not zero");
  RestoreOptions options;
  if (source.plan != nullptr) options.plan = source.plan;
  options.capacity = target.capacity;
  options.cancellation = Cancellation(source.cancel);
  return restore_sequences(target.runtime->object, target.model->object,
                           target.profile == nullptr ? nullptr : target.profile->object, options, read);
}

// Handles for all, or none.
void hand_out(std::vector<std::shared_ptr<Sequence>> restored, const RestoreTarget& target) {
  std::vector<std::unique_ptr<foldkv_sequence>> handles;
  for (std::shared_ptr<Sequence>& sequence : restored) {
    handles.push_back(std::make_unique<foldkv_sequence>(foldkv_sequence{std::move(sequence)}));
  }
  for (size_t index = 0; index < handles.size(); ++index) target.sequences[index] = handles[index].release();
  *target.count = static_cast<int32_t>(handles.size());
}

auto reader_of(foldkv_read read, void* context) {
  return [read, context](std::span<std::byte> bytes) {
    const int32_t code = read(context, bytes.data(), bytes.size());
    return code == 0 ? absl::OkStatus() : file_error(code, absl::StrCat("the host's read returned ", code));
  };
}

Status restore_from(const RestoreTarget& target, foldkv_read read, void* context) {
  FOLDKV_RETURN_IF_ERROR(check_target(target));
  if (read == nullptr) return argument_error("read", "is NULL");
  FOLDKV_ASSIGN_OR_RETURN(auto restored, restore(target, reader_of(read, context)));
  hand_out(std::move(restored), target);
  return absl::OkStatus();
}

Status restore_from_file(const RestoreTarget& target, const char* path) {
  FOLDKV_RETURN_IF_ERROR(check_target(target));
  FOLDKV_RETURN_IF_ERROR(require(path, "path"));
  std::vector<std::shared_ptr<Sequence>> restored;
  FOLDKV_RETURN_IF_ERROR(read_file(path, [&](ReadBytes read) -> Status {
    FOLDKV_ASSIGN_OR_RETURN(restored, restore(target, read));
    return absl::OkStatus();
  }));
  hand_out(std::move(restored), target);
  return absl::OkStatus();
}

Status restore_from_buffer(RestoreTarget target, const void* bytes, size_t size) {
  int32_t count = 0;
  target.count = &count;
  FOLDKV_RETURN_IF_ERROR(check_target(target));
  FOLDKV_RETURN_IF_ERROR(require(bytes, "bytes"));
  std::span<const std::byte> rest(static_cast<const std::byte*>(bytes), size);
  FOLDKV_ASSIGN_OR_RETURN(auto restored, restore(target, [&](std::span<std::byte> wanted) {
                            if (wanted.size() > rest.size())
                              return corrupt_error("the snapshot is not whole: the buffer ends too early");
                            std::copy_n(rest.begin(), wanted.size(), wanted.begin());
                            rest = rest.subspan(wanted.size());
                            return absl::OkStatus();
                          }));
  if (!rest.empty())
    return corrupt_error("the snapshot is not whole or has been changed: the buffer goes on behind it");
  hand_out(std::move(restored), target);
  return absl::OkStatus();
}

foldkv_snapshot_info public_info(const SnapshotSummary& summary) {
  foldkv_snapshot_info info{};
  info.sequence_count = static_cast<int32_t>(summary.sequence_count);
  info.model_fingerprint = summary.model_fingerprint;
  info.profile_fingerprint = summary.profile_fingerprint;
  info.page_bytes = summary.page_bytes;
  info.note_size = summary.note.size();
  info.tokens = summary.tokens;
  info.next_position = summary.next_position;
  write_text(info.model_name, summary.model_name);
  write_text(info.plan, summary.plan);
  write_text(info.made_by, summary.made_by);
  return info;
}

Status inspect(foldkv_read read, void* context, foldkv_snapshot_info* info, void* note, size_t note_capacity) {
  if (read == nullptr) return argument_error("read", "is NULL");
  FOLDKV_RETURN_IF_ERROR(check_output_struct(info, "info"));
  FOLDKV_ASSIGN_OR_RETURN(const SnapshotSummary summary, inspect_snapshot(reader_of(read, context)));
  if (note != nullptr && note_capacity < summary.note.size()) {
    return argument_error("note_capacity",
                          absl::StrCat("is ", note_capacity, ", expected ", summary.note.size(), " or more"));
  }
  if (note != nullptr) std::copy(summary.note.begin(), summary.note.end(), static_cast<std::byte*>(note));
  write_struct(public_info(summary), info);
  return absl::OkStatus();
}

}  // namespace
}  // namespace foldkv::abi

extern "C" {

foldkv_status foldkv_sequences_save(const foldkv_sequence* const* sequences, int32_t sequence_count,
                                    const foldkv_save_options* options, foldkv_write write, void* context,
                                    foldkv_error* error) {
  return foldkv::abi::guard(error,
                            [&] { return foldkv::abi::save_to(sequences, sequence_count, options, write, context); });
}

foldkv_status foldkv_sequences_save_file(const foldkv_sequence* const* sequences, int32_t sequence_count,
                                         const foldkv_save_options* options, const char* path, foldkv_error* error) {
  return foldkv::abi::guard(error, [&] { return foldkv::abi::save_to_file(sequences, sequence_count, options, path); });
}

foldkv_status foldkv_sequence_save(const foldkv_sequence* sequence, const foldkv_save_options* options, void* buffer,
                                   size_t capacity, size_t* size, foldkv_error* error) {
  return foldkv::abi::guard(error, [&]() -> foldkv::Status {
    FOLDKV_RETURN_IF_ERROR(foldkv::abi::require(sequence, "sequence"));
    return foldkv::abi::save_to_buffer(sequence, options, buffer, capacity, size);
  });
}

foldkv_status foldkv_sequences_restore(foldkv_runtime* runtime, const foldkv_model* model,
                                       const foldkv_profile* profile, const foldkv_restore_options* options,
                                       foldkv_read read, void* context, foldkv_sequence** sequences, int32_t capacity,
                                       int32_t* sequence_count, foldkv_error* error) {
  return foldkv::abi::guard(error, [&] {
    return foldkv::abi::restore_from({runtime, model, profile, options, sequences, capacity, sequence_count}, read,
                                     context);
  });
}

foldkv_status foldkv_sequences_restore_file(foldkv_runtime* runtime, const foldkv_model* model,
                                            const foldkv_profile* profile, const foldkv_restore_options* options,
                                            const char* path, foldkv_sequence** sequences, int32_t capacity,
                                            int32_t* sequence_count, foldkv_error* error) {
  return foldkv::abi::guard(error, [&] {
    return foldkv::abi::restore_from_file({runtime, model, profile, options, sequences, capacity, sequence_count},
                                          path);
  });
}

foldkv_status foldkv_sequence_restore(foldkv_runtime* runtime, const foldkv_model* model, const foldkv_profile* profile,
                                      const foldkv_restore_options* options, const void* bytes, size_t size,
                                      foldkv_sequence** sequence, foldkv_error* error) {
  return foldkv::abi::guard(error, [&] {
    return foldkv::abi::restore_from_buffer({runtime, model, profile, options, sequence, 1, nullptr}, bytes, size);
  });
}

foldkv_status foldkv_snapshot_inspect(foldkv_read read, void* context, foldkv_snapshot_info* info, void* note,
                                      size_t note_capacity, foldkv_error* error) {
  return foldkv::abi::guard(error, [&] { return foldkv::abi::inspect(read, context, info, note, note_capacity); });
}

}  // extern "C"
