#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// The options of a command. CLI11 does the work, but is seen by option_list.cpp alone: its header brings ten seconds of
// compilation to every file that calls it.
namespace foldkv_lab {

enum class OptionCheck { kExistingFile, kPositive, kNonNegative };

// One option. A reference to what the list holds, to be copied freely while the program lives.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& required();
  // Help tells the value that the variable has now.
  Option& shows_default();
  Option& check(OptionCheck check);
  // Both ends included.
  Option& between(int64_t low, int64_t high);
  // check returns what is wrong with a text, or nothing.
  Option& check(std::function<std::string(const std::string&)> check);
  // Bytes with a unit: 64MiB.
  Option& as_bytes();
  Option& excludes(const Option& other);
  Option& needs(const Option& other);

 private:
  CLI::Option* option_;
};

class OptionList {
 public:
  // A command of the program. What the options write to must live as long as the program.
  OptionList(CLI::App& program, const std::string& command, const std::string& help);

  // The value of --name. Value: std::string, int32_t, int64_t, uint64_t, double, float, or a vector of strings, int64_t
  // or double.
  template <typename Value>
  Option add(const std::string& name, Value& value, const std::string& help);

  Option add_flag(const std::string& name, bool& value, const std::string& help);

  // One of several words, each of which stands for a value.
  template <typename Value>
  Option add_choice(const std::string& name, Value& value, const std::vector<std::pair<std::string, Value>>& choices,
                    const std::string& help) {
    std::vector<std::string> words;
    std::vector<Value> values;
    for (const auto& [word, meaning] : choices) {
      words.push_back(word);
      values.push_back(meaning);
    }
    return add_words(
        name, words, [values, &value](size_t index) { value = values[index]; }, help);
  }

  // Called when the command was chosen and all its options are read.
  void when_chosen(std::function<void()> chosen);

 private:
  Option add_words(const std::string& name, const std::vector<std::string>& words, std::function<void(size_t)> choose,
                   const std::string& help);

  CLI::App* app_;
};

}  // namespace foldkv_lab
