#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>

#include "backends/cpu/asymmetric_codes.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/latents.h"
#include "backends/cpu/region.h"
#include "backends/cpu/stacked_rows.h"
#include "backends/cpu/trellis.h"
#include "backends/cpu/workspace.h"
#include "backends/interface/merged_page.h"

namespace foldkv::backend::cpu {
namespace {

// Memory shared by all workers, then of each. Columns of the basis beyond the last full register are copied, so that
// kernels never read beyond its rows.
struct Shared {
  float* mean = nullptr;         // [stacked width]
  float* last_columns = nullptr; // [stacked width][16], zero beyond the stored width

  static Shared take(Workspace& workspace, int64_t stacked_width) {
    Shared shared;
    shared.mean = workspace.take<float>(stacked_width);
    shared.last_columns = workspace.take<float>(stacked_width * kWidthPadding);
    return shared;
  }
};
struct Scratch {
  float* rows = nullptr;     // [64][stacked width], centred
  float* latents = nullptr;  // [64][padded latent width]
  TrellisScratch trellis;

  static Scratch take(Workspace& workspace, int64_t stacked_width, int64_t latent_width, int64_t trellis_width) {
    Scratch scratch;
    scratch.trellis = TrellisScratch::take(workspace, trellis_width);
    scratch.rows = workspace.take<float>(kTile * stacked_width);
    scratch.latents = workspace.take<float>(kTile * round_up(latent_width, kWidthPadding));
    return scratch;
  }
};

struct Context {
  const Engine& engine;
  const EncodeRequest& request;
  const LatentPlane& plane;
  int64_t width;  // of stacked rows
  Shared shared;
};

void prepare_shared(const Context& context) {
  if (context.request.mean != nullptr) {
    context.engine.kernels.to_f32(NumberFormat::kF16, context.request.mean, context.width, context.shared.mean);
  }
  if (context.request.basis == nullptr) return;
  const int64_t full = context.plane.stored_width / kWidthPadding * kWidthPadding;
  const int64_t rest = context.plane.stored_width - full;
  for (int64_t row = 0; row < context.width; ++row) {
    float* copy = context.shared.last_columns + row * kWidthPadding;
    std::copy_n(context.request.basis + row * context.plane.width + full, rest, copy);
    std::fill(copy + rest, copy + kWidthPadding, 0.0f);
  }
}

// scratch.latents = scratch.rows * basis. Sums of a token run over its numbers in order, whatever stands beside it.
void project(const Context& context, int64_t tokens, const Scratch& scratch) {
  const int64_t stride = round_up(context.plane.stored_width, kWidthPadding);
  if (context.request.basis == nullptr) {
    for (int64_t token = 0; token < tokens; ++token) {
      std::copy_n(scratch.rows + token * context.width, context.width, scratch.latents + token * stride);
    }
    return;
  }
  const int64_t full = context.plane.stored_width / kWidthPadding * kWidthPadding;
  MatrixProduct product = {.rows = tokens,
                           .columns = full,
                           .depth = context.width,
                           .a = scratch.rows,
                           .a_stride = context.width,
                           .b = context.request.basis,
                           .b_stride = context.plane.width,
                           .c = scratch.latents,
                           .c_stride = stride};
  context.engine.kernels.matrix_product(product);
  if (full == context.plane.stored_width) return;
  product.columns = kWidthPadding;
  product.b = context.shared.last_columns;
  product.b_stride = kWidthPadding;
  product.c = scratch.latents + full;
  context.engine.kernels.matrix_product(product);
}

TokenBytes token_bytes(const Context& context, int64_t slot) {
  const LatentLayout& layout = *context.request.layout;
  std::byte* page = latent_page(context.request.pages, layout, slot);
  const int64_t row = slot % layout.page_tokens;
  return {reinterpret_cast<uint8_t*>(page + context.plane.codes_offset + row * context.plane.code_bytes),
          reinterpret_cast<uint8_t*>(page + context.plane.scales_offset + row * context.plane.scale_bytes)};
}

// False: a latent or a scale is out of range.
bool quantize_uniform(const Context& context, const ScaleGroup& group, const float* latents, const TokenBytes& bytes) {
  const uint32_t scale = context.engine.kernels.quantize_group({.latents = latents + group.first,
                                                                .count = group.count,
                                                                .bits = group.bits,
                                                                .codes = bytes.codes + group.byte_offset});
  if (scale == kBadScale) return false;
  const auto half = static_cast<uint16_t>(scale);
  std::memcpy(bytes.scales + group.scale_offset, &half, sizeof half);
  return true;
}

bool store_halves(const Context& context, const ScaleGroup& group, const float* latents, const TokenBytes& bytes) {
  return context.engine.kernels.from_f32(NumberFormat::kF16, latents + group.first, group.count,
                                         bytes.codes + group.byte_offset);
}

// Codes of one token that depend on no other; channel groups are not among them.
bool quantize_token(const Context& context, const ScaleGroup& group, const float* latents, const TokenBytes& bytes) {
  switch (group.code) {
    case Code::kUniform: return quantize_uniform(context, group, latents, bytes);
    case Code::kHalf: return store_halves(context, group, latents, bytes);
    case Code::kAsymmetric: return quantize_asymmetric(group, latents, bytes);
    case Code::kTrellis:
    case Code::kChannel: break;
  }
  return true;
}

// Up to 16 tokens at a time: latents [tokens][stride].
bool quantize_tokens(const Context& context, const float* latents, int64_t stride, std::span<const TokenBytes> tokens,
                     const TrellisScratch& scratch) {
  const std::vector<ScaleGroup>& groups = context.plane.scale_groups;
  for (size_t index = 0; index < groups.size();) {
    if (groups[index].code == Code::kTrellis) {
      const std::span<const ScaleGroup> run = context.plane.trellis_run(index);
      if (!encode_trellis(context.engine.kernels, run, latents, stride, tokens, scratch)) return false;
      index += run.size();
      continue;
    }
    for (size_t token = 0; token < tokens.size(); ++token) {
      const float* row = latents + static_cast<int64_t>(token) * stride;
      if (!quantize_token(context, groups[index], row, tokens[token])) return false;
    }
    ++index;
  }
  return true;
}

// Less `mean` unless null.
void gather_rows(const Context& context, int64_t first, int64_t tokens, const float* mean, const Scratch& scratch) {
  for (int64_t token = 0; token < tokens; ++token) {
    gather_stacked_row(context.engine.kernels, context.request.rows, first + token, mean,
                       scratch.rows + token * context.width);
  }
}

// Merged heads: a page at a time.
bool encode_page(const Context& context, int64_t first, const Scratch& scratch) {
  const LatentLayout& layout = *context.request.layout;
  gather_rows(context, first, layout.page_tokens, nullptr, scratch);
  return write_merged_page(context.plane, layout.page_tokens, scratch.rows,
                           latent_page(context.request.pages, layout, context.request.first_latent_slot + first));
}

bool encode_tile(const Context& context, int64_t first, int64_t tokens, const Scratch& scratch) {
  gather_rows(context, first, tokens, context.request.mean == nullptr ? nullptr : context.shared.mean, scratch);
  project(context, tokens, scratch);
  const int64_t stride = round_up(context.plane.stored_width, kWidthPadding);
  for (int64_t token = 0; token < tokens; token += kTrellisTokens) {
    const int64_t some = std::min(kTrellisTokens, tokens - token);
    std::array<TokenBytes, kTrellisTokens> bytes;
    for (int64_t i = 0; i < some; ++i) {
      bytes[static_cast<size_t>(i)] = token_bytes(context, context.request.first_latent_slot + first + token + i);
    }
    if (!quantize_tokens(context, scratch.latents + token * stride, stride, {bytes.data(), static_cast<size_t>(some)},
                         scratch.trellis)) {
      return false;
    }
  }
  for (const ScaleGroup& group : context.plane.scale_groups) {
    if (group.code != Code::kChannel) continue;
    for (int64_t token = 0; token < tokens; token += kChannelTokens) {
      if (!quantize_channels(*context.request.layout, context.plane, group, context.request.pages,
                             context.request.first_latent_slot + first + token,
                             {scratch.latents + token * stride, stride})) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

int64_t encode_workspace(const Engine& engine, int64_t stacked_width, int64_t latent_width, int64_t trellis_width) {
  Workspace workspace(nullptr);
  Shared::take(workspace, stacked_width);
  workspace.take<Scratch>(engine.workers());
  for (int64_t worker = 0; worker < engine.workers(); ++worker) {
    Scratch::take(workspace, stacked_width, latent_width, trellis_width);
  }
  return workspace.bytes();
}

Status encode(const Engine& engine, const EncodeRequest& request) {
  const LatentPlane& plane = request.layout->plane(request.rows.side);
  const int64_t width = request.rows.width();
  Workspace workspace(request.workspace);
  const Context context = {engine, request, plane, width, Shared::take(workspace, width)};
  const std::span<Scratch> workers = {workspace.take<Scratch>(engine.workers()),
                                      static_cast<size_t>(engine.workers())};
  for (Scratch& worker : workers) worker = Scratch::take(workspace, width, plane.stored_width, plane.trellis_width());
  prepare_shared(context);
  std::atomic<bool> in_range = true;
  const bool merged = plane.merged.layers > 0;
  const int64_t unit = merged ? request.layout->page_tokens : kTile;
  engine.threads.run(divide_up(request.rows.count, unit), [&](int64_t tile, int worker) {
    const int64_t first = tile * unit;
    const Scratch& scratch = workers[static_cast<size_t>(worker)];
    const bool fits = merged ? encode_page(context, first, scratch)
                             : encode_tile(context, first, std::min(unit, request.rows.count - first), scratch);
    if (!fits) in_range = false;
  });
  if (!in_range) {
    return numeric_error(absl::StrCat("the latents of ", request.rows.side == Side::kKeys ? "keys" : "values",
                                      " are not finite or too large for a scale in f16"));
  }
  return absl::OkStatus();
}

}  // namespace foldkv::backend::cpu
