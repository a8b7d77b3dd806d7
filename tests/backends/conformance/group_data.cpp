#include "tests/backends/conformance/group_data.h"

#include <algorithm>
#include <cmath>

#include "tests/backends/conformance/remembered_normals.h"

namespace foldkv::test {
namespace {

using backend::Side;

std::string describe(const std::vector<LatentBand>& bands) {
  std::string text;
  for (const LatentBand& band : bands) {
    absl::StrAppend(&text, text.empty() ? "" : "+", band.width, "x", band.bits);
    if (band.step > 0) absl::StrAppend(&text, "/", band.step, "t");
  }
  return text;
}

std::vector<LatentBand> random_bands(Random& random) {
  std::vector<LatentBand> bands;
  for (int64_t i = random.between(1, 3); i > 0; --i) {
    if (random.chance(0.4)) {
      bands.push_back(random.pick(trellis_bands(random.between(1, 40))));
    } else {
      bands.push_back({random.between(1, 40), static_cast<int32_t>(random.between(2, 8))});
    }
  }
  if (random.chance(0.3)) bands.push_back({random.between(1, 10), 0});
  return bands;
}

std::vector<float> remembered_basis(Random& random, int64_t width, int64_t latent_width) {
  return remembered_normals(random, width * latent_width, 1.0 / std::sqrt(static_cast<double>(width)));
}

}  // namespace

std::string describe(const GroupShape& shape) {
  return absl::StrCat(shape.count, " tokens at ", shape.first_slot, " and ", shape.first_latent_slot, ", ",
                      shape.layers, " layers of ", shape.layer_width, " ", std::string(name_of(shape.format)),
                      ", keys ", describe(shape.key_bands), " values ", describe(shape.value_bands), " by ",
                      shape.scale_group, ", rank ", shape.correction_rank, shape.means ? "" : ", no means");
}

GroupShape random_group(Random& random) {
  GroupShape shape;
  shape.layers = random.between(1, 4);
  shape.layer_width = random.between(1, 40);
  shape.key_bands = random_bands(random);
  shape.value_bands = random_bands(random);
  shape.scale_group = random.pick(std::vector<int64_t>{3, 5, 16, 64, 128});
  shape.correction_rank = random.between(0, std::min<int64_t>(9, shape.width()));
  shape.count = random.between(1, 70);
  shape.first_slot = random.between(0, 5);
  shape.first_latent_slot = random.between(0, 70);
  shape.format = random.pick(std::vector<NumberFormat>{NumberFormat::kF32, NumberFormat::kF16, NumberFormat::kBF16});
  shape.exact_page_tokens = random.between(1, 33);
  shape.latent_page_tokens = random.between(1, 65);
  shape.means = random.chance(0.7);
  return shape;
}

GroupData::GroupData(const GroupShape& group_shape, uint64_t seed, std::byte fill)
    : shape(group_shape),
      random(seed),
      layout(make_layout(make_plane(shape.key_bands, shape.scale_group),
                         make_plane(shape.value_bands, shape.scale_group), shape.correction_rank,
                         shape.latent_page_tokens)),
      exact({shape.exact_page_tokens, shape.layer_width, shape.format}, shape.layers,
            shape.first_slot + shape.count + 1, fill),
      latents(layout, shape.first_latent_slot + shape.count + 1, fill),
      key_basis(remembered_basis(random, shape.width(), layout.keys.width)),
      value_basis(remembered_basis(random, shape.width(), layout.values.width)),
      key_mean(halves(random.normals<float>(shape.width()))),
      value_mean(halves(random.normals<float>(shape.width()))),
      correction(halves(remembered_basis(random, shape.width(), shape.correction_rank))) {
  for (int64_t t = 0; t < shape.count; ++t) {
    exact.put(Side::kKeys, shape.first_slot + t, random.normals<float>(shape.width()).data());
    exact.put(Side::kValues, shape.first_slot + t, random.normals<float>(shape.width()).data());
  }
  latents.randomize(random, shape.first_latent_slot, shape.count, 1.0);
}

backend::LatentRegion GroupData::region(bool corrected) const {
  return {latents.pool().pages(), shape.first_latent_slot + shape.count, mean(Side::kKeys), mean(Side::kValues),
          corrected && shape.correction_rank > 0 ? correction.data() : nullptr};
}

const uint16_t* GroupData::mean(Side side) const {
  if (!shape.means) return nullptr;
  return side == Side::kKeys ? key_mean.data() : value_mean.data();
}

backend::LatentShape GroupData::latent_shape(int64_t sketch_columns) const {
  return {shape.width(), layout.keys.width, layout.values.width, sketch_columns, shape.count,
          std::max(layout.keys.trellis_width(), layout.values.trellis_width())};
}

bool GroupData::canaries_alive() const {
  for (int64_t i = 0; i < shape.layers; ++i) {
    if (!exact.layer(i).pool().canaries_alive()) return false;
  }
  return latents.pool().canaries_alive();
}

}  // namespace foldkv::test
