#include "runtime/policy/score_table.h"

#include "runtime/base/checked.h"

namespace foldkv {

Status check_score_table(absl::string_view argument, const ScoreTable& table) {
  if (checked_multiply({table.heads, table.tokens}) == std::ssize(table.scores)) return absl::OkStatus();
  return argument_error(argument, absl::StrCat(argument, ": got ", table.scores.size(), " scores, expected ",
                                               table.heads, " heads x ", table.tokens, " tokens"));
}

}  // namespace foldkv
