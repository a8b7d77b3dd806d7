#pragma once

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "samples/lab/evaluate.h"
#include "samples/lab/evaluate_task.h"

namespace foldkv_lab {

// {"codecs": [one entry for each codec], "seconds_full"}
[[nodiscard]] nlohmann::json evaluation_json(const Evaluation& evaluation);
// A line for each codec and text that is unlike what the codec was calibrated on.
[[nodiscard]] std::string evaluation_warnings(const Evaluation& evaluation);
// Losses: a row for each codec and text and one for the mean of the texts. Then bytes: a row for each codec.
[[nodiscard]] std::string evaluation_table(const Evaluation& evaluation);

[[nodiscard]] nlohmann::json task_json(const TaskEvaluation& evaluation);
[[nodiscard]] std::string task_table(const TaskEvaluation& evaluation);

}  // namespace foldkv_lab
