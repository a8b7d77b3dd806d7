#include "samples/lab/option_list.h"

#include <algorithm>

#include "CLI/CLI.hpp"
#include "absl/strings/str_join.h"

namespace foldkv_lab {

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::shows_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::check(OptionCheck check) {
  switch (check) {
    case OptionCheck::kExistingFile: option_->check(CLI::ExistingFile); break;
    case OptionCheck::kPositive: option_->check(CLI::PositiveNumber); break;
    case OptionCheck::kNonNegative: option_->check(CLI::NonNegativeNumber); break;
  }
  return *this;
}

Option& Option::between(int64_t low, int64_t high) {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option& Option::check(std::function<std::string(const std::string&)> check) {
  option_->check(std::move(check));
  return *this;
}

Option& Option::as_bytes() {
  option_->transform(CLI::AsSizeValue(false));
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}

OptionList::OptionList(CLI::App& program, const std::string& command, const std::string& help)
    : app_(program.add_subcommand(command, help)) {}

template <typename Value>
Option OptionList::add(const std::string& name, Value& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

template Option OptionList::add(const std::string&, std::string&, const std::string&);
template Option OptionList::add(const std::string&, int32_t&, const std::string&);
template Option OptionList::add(const std::string&, int64_t&, const std::string&);
template Option OptionList::add(const std::string&, uint64_t&, const std::string&);
template Option OptionList::add(const std::string&, float&, const std::string&);
template Option OptionList::add(const std::string&, double&, const std::string&);
template Option OptionList::add(const std::string&, std::vector<std::string>&, const std::string&);
template Option OptionList::add(const std::string&, std::vector<int64_t>&, const std::string&);
template Option OptionList::add(const std::string&, std::vector<double>&, const std::string&);

Option OptionList::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}

Option OptionList::add_words(const std::string& name, const std::vector<std::string>& words,
                             std::function<void(size_t)> choose, const std::string& help) {
  const auto chosen = [words, choose = std::move(choose)](const std::string& word) {
    choose(static_cast<size_t>(std::find(words.begin(), words.end(), word) - words.begin()));
  };
  CLI::Option* const option = app_->add_option_function<std::string>(name, chosen, help);
  option->check(CLI::IsMember(words))->option_text(absl::StrJoin(words, "|"));
  return Option(option);
}

void OptionList::when_chosen(std::function<void()> chosen) { app_->callback(std::move(chosen)); }

}  // namespace foldkv_lab
