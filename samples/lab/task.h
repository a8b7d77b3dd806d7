#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "samples/lab/haystack.h"
#include "samples/lab/uniform_random.h"

namespace foldkv_lab {

// A question about something that is hidden in a long text.
struct Riddle {
  std::vector<std::string> hidden;  // each stands at a random depth of its own
  std::string question;             // read after the text: ends where the answer begins
  std::string answer;
  bool digits = false;  // only the answer's digits count
};

// A kind of riddle with a name.
struct Task {
  const char* name;
  const char* description;
  absl::StatusOr<Riddle> (*draw)(const Haystack& haystack, UniformRandom& random);
};

[[nodiscard]] const std::vector<Task>& all_tasks();
// An error that names all tasks when there is none of this name.
[[nodiscard]] absl::StatusOr<const Task*> find_task(const std::string& name);

}  // namespace foldkv_lab
