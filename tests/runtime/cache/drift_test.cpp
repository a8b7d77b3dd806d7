#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "doctest/doctest.h"
#include "runtime/calibration/plan_bits.h"
#include "tests/runtime/cache/toy_host.h"

// What sequences measure of the energy that compression loses, and what their profile expects.
namespace foldkv::test {
namespace {

constexpr int64_t kPrompt = 400;

// The same numbers in other columns: rows of like energy that the bases were not made for.
ToyTokens unlike(ToyTokens tokens, std::vector<std::vector<float>> ToyTokens::*side, int64_t width) {
  for (std::vector<float>& rows : tokens.*side) {
    for (auto row = rows.begin(); row != rows.end(); row += width) std::reverse(row, row + width);
  }
  return tokens;
}

std::shared_ptr<const Profile> planned(const std::shared_ptr<Runtime>& runtime, const ToyHost& host) {
  ProfileChoice choice;
  choice.latent_width = 1000;  // all coordinates
  choice.scale_group = 8;
  choice.rotate = true;
  const auto profile = calibrate(runtime, host, choice, 2000);
  return std::make_shared<const Profile>(plan_bits(*profile, {{"6x", 0.0, 6.0}, {"20x", 0.0, 20.0}}).value());
}

std::shared_ptr<Sequence> fed(const std::shared_ptr<Runtime>& runtime, const ToyHost& host,
                              const std::shared_ptr<const Profile>& profile, size_t plan, const ToyTokens& tokens) {
  SequencePolicy policy;
  policy.plan = plan;
  const auto sequence = make_sequence(runtime, host, profile, policy);
  (void)run_step(runtime, host, {{sequence, &tokens, 0, kPrompt, false, {}}});
  return sequence;
}

TEST_CASE("text like the calibration's loses what was expected, other text clearly more") {
  const ToyHost host{ToyShape{}};
  const int64_t width = host.shape().key_width();
  for (const std::string& name : backend_names()) {
    CAPTURE(name);
    const auto runtime = open_runtime({name});
    const auto bellows = calibrate(runtime, host, {2, 4, 0, 16, 0}, 2000);
    const auto plans = planned(runtime, host);
    for (const auto& [profile, plan] : {std::pair{bellows, size_t{0}}, {plans, size_t{0}}, {plans, size_t{1}}}) {
      CAPTURE(plan);
      const ToyTokens tokens = host.tokens(kPrompt, 77);
      const auto like = fed(runtime, host, profile, plan, tokens);
      const Energies expected = like->expected_energies();
      for (size_t side = 0; side < 2; ++side) {
        CHECK(expected[side].share_lost() > 0.0);
        CHECK(like->energies()[side].share_lost() == doctest::Approx(expected[side].share_lost()).epsilon(0.2));
      }
      const auto other_keys = fed(runtime, host, profile, plan, unlike(tokens, &ToyTokens::key, width));
      CHECK(other_keys->energies()[0].share_lost() > 2.0 * expected[0].share_lost());
      CHECK(other_keys->energies()[1].share_lost() == like->energies()[1].share_lost());
      const auto other_values = fed(runtime, host, profile, plan, unlike(tokens, &ToyTokens::value, width));
      CHECK(other_values->energies()[1].share_lost() > 2.0 * expected[1].share_lost());
    }
  }
}

// Few enough tokens that all of them are measured.
TEST_CASE("the figure is that of what the sequence rebuilds") {
  const ToyHost host{ToyShape{}};
  const int64_t width = host.shape().key_width();
  const auto runtime = open_runtime({"reference"});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 2}, 2000);  // with a correction
  const ToyTokens tokens = host.tokens(60, 5);
  SequencePolicy policy;
  policy.format = NumberFormat::kF32;
  policy.recent_tokens = 16;
  policy.mean = MeanSource::kProfile;
  const auto sequence = make_sequence(runtime, host, profile, policy);
  CHECK(sequence->energies()[0].total == 0.0);
  (void)run_step(runtime, host, {{sequence, &tokens, 0, 60, false, {}}});
  for (const backend::Side side : {backend::Side::kKeys, backend::Side::kValues}) {
    SideEnergy direct;
    for (int64_t layer = 0; layer < host.shape().layers; ++layer) {
      const ProfileGroup& group = profile->groups[static_cast<size_t>(layer / 2)];
      const std::vector<float>& mean = side == backend::Side::kKeys ? group.keys.mean : group.values.mean;
      const std::vector<float>& rows =
          (side == backend::Side::kKeys ? tokens.key : tokens.value)[static_cast<size_t>(layer)];
      std::vector<float> rebuilt(static_cast<size_t>(40 * width));
      const MutableTensorView view{reinterpret_cast<std::byte*>(rebuilt.data()), NumberFormat::kF32, 40, width, width};
      REQUIRE(sequence->rebuild({layer, side, false, 4, 40}, view).ok());
      for (size_t at = 0; at < rebuilt.size(); ++at) {
        const auto number = static_cast<double>(rows[at + static_cast<size_t>(4 * width)]);
        const size_t column = at % static_cast<size_t>(width) + static_cast<size_t>(layer % 2 * width);
        const double from_mean = number - static_cast<double>(f32_from_f16(f16_from_f32(mean[column])));
        const double from_rebuilt = number - static_cast<double>(rebuilt[at]);
        direct.total += from_mean * from_mean;
        direct.lost += from_rebuilt * from_rebuilt;
      }
    }
    const SideEnergy& measured = sequence->energies()[static_cast<size_t>(side)];
    CHECK(measured.total == doctest::Approx(direct.total).epsilon(1e-5));
    CHECK(measured.lost == doctest::Approx(direct.lost).epsilon(1e-5));
  }
}

TEST_CASE("every run counts by its tokens, and only once it is published") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({"cpu"});
  const auto profile = calibrate(runtime, host, {2, 4, 0, 16, 0});
  const ToyTokens tokens = host.tokens(kPrompt + 64, 5);
  const auto sequence = fed(runtime, host, profile, 0, tokens);
  const double prompt = sequence->energies()[0].total;
  const double per_token = prompt / static_cast<double>(sequence->storage().latent_tokens());
  for (int64_t token = kPrompt; token < kPrompt + 63; ++token) {
    (void)run_step(runtime, host, {{sequence, &tokens, token, 1, false, {}}});
  }
  CHECK(sequence->energies()[0].total == prompt);
  (void)run_step(runtime, host, {{sequence, &tokens, kPrompt + 63, 1, false, {}}});  // folds 64
  CHECK(sequence->energies()[0].total - prompt == doctest::Approx(64.0 * per_token).epsilon(0.3));
  auto step = Step::begin(runtime, {{sequence, 200, {}, false}}, {});
  REQUIRE(step.ok());
  const double before = sequence->energies()[0].total;
  step->reset();
  CHECK(sequence->energies()[0].total == before);
}

TEST_CASE("without a profile there is nothing to measure or to expect") {
  const ToyHost host{ToyShape{}};
  const auto runtime = open_runtime({"cpu"});
  const ToyTokens tokens = host.tokens(kPrompt, 5);
  const auto sequence = fed(runtime, host, nullptr, 0, tokens);
  for (const Energies& energies : {sequence->energies(), sequence->expected_energies()}) {
    for (const SideEnergy& side : energies) CHECK(side.share_lost() == 0.0);
  }
}

}  // namespace
}  // namespace foldkv::test
