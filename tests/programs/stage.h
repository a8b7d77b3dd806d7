#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/handles.h"
#include "tests/support/layer_shape.h"

namespace foldkv::test::programs {

// How a sequence stores its tokens.
enum class Recipe : int32_t {
  kExact, kInteger8, kInteger4, kKivi4, kKivi2, kXkv, kXkv4, kMiniCache, kKvSharer, kLearned, kUncentred, kPlans
};
inline constexpr int32_t kRecipeCount = 12;
[[nodiscard]] const char* name_of(Recipe recipe);

// A model and profiles for it. They belong to no runtime, so that programs share them.
class Stage {
 public:
  // The same object for every call with that number.
  [[nodiscard]] static const Stage& of(int32_t number);
  static constexpr int32_t kCount = 18;

  explicit Stage(int32_t number);

  [[nodiscard]] const foldkv_model* model() const { return model_.get(); }
  [[nodiscard]] const std::vector<LayerShape>& layers() const { return layers_; }
  [[nodiscard]] int32_t layer_count() const { return static_cast<int32_t>(layers_.size()); }
  // All layers are of one width.
  [[nodiscard]] int64_t key_width() const { return layers_.front().key_width(); }
  // NULL for kExact, and where the model has no layers for it.
  [[nodiscard]] const foldkv_profile* profile(Recipe recipe) const {
    return profiles_[static_cast<size_t>(recipe)].get();
  }
  // Whether a layer's tokens become latents.
  [[nodiscard]] bool grouped(Recipe recipe, int32_t layer) const {
    return grouped_[static_cast<size_t>(recipe)][static_cast<size_t>(layer)];
  }
  // The layer whose keys and values a layer reads.
  [[nodiscard]] int32_t source(Recipe recipe, int32_t layer) const {
    return sources_[static_cast<size_t>(recipe)][static_cast<size_t>(layer)];
  }
  [[nodiscard]] const std::vector<std::string>& plans() const { return plans_; }  // of kPlans

 private:
  void make_model();
  void make_profiles();
  void add_codec(Recipe recipe, int32_t codec, int32_t bits);
  void add_learned();
  void describe(Recipe recipe);

  std::vector<LayerShape> layers_;
  Owned<foldkv_model> model_;
  std::vector<Owned<foldkv_profile>> profiles_;
  std::vector<std::vector<bool>> grouped_;
  std::vector<std::vector<int32_t>> sources_;
  std::vector<std::string> plans_;
};

}  // namespace foldkv::test::programs
