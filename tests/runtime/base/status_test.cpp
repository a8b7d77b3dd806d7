#include "runtime/base/status.h"

#include <iterator>
#include <set>
#include <string>

#include "doctest/doctest.h"
#include "runtime/base/check_range.h"

namespace foldkv {
namespace {

StatusOr<int> half_of(int number) {
  if (number % 2 != 0) return argument_error("number", "is odd");
  return number / 2;
}

StatusOr<int> quarter_of(int number) {
  FOLDKV_ASSIGN_OR_RETURN(const int half, half_of(number));
  FOLDKV_ASSIGN_OR_RETURN(const int quarter, half_of(half));
  return quarter;
}

Status check_quarter(int number) {
  FOLDKV_RETURN_IF_ERROR(quarter_of(number).status());
  return absl::OkStatus();
}

TEST_CASE("an error carries the name of its argument") {
  const Status status = argument_error("layers[3].kv_heads", "got 0, expected 1 or more");
  CHECK(argument_of(status) == "layers[3].kv_heads");
  CHECK(std::string(status.message()) == "got 0, expected 1 or more");
  CHECK(argument_of(with_argument(numeric_error("NaN"), "key")) == "key");
  CHECK(argument_of(numeric_error("NaN")).empty());
  CHECK(argument_of(absl::OkStatus()).empty());
  CHECK(with_argument(absl::OkStatus(), "key").ok());
}

TEST_CASE("an error of a backend carries the backend's code") {
  CHECK(native_code_of(backend_error(-42, "device lost")) == -42);
  CHECK(native_code_of(internal_error("x")) == 0);
}

TEST_CASE("kinds of errors have codes of their own") {
  const Status all[] = {argument_error("a", ""), version_error(""),  budget_error(""),    memory_error(""),
                        unsupported_error(""),   state_error(""),    mismatch_error(""),  corrupt_error(""),
                        numeric_error(""),       internal_error(""), backend_error(1, "")};
  std::set<absl::StatusCode> codes;
  for (const Status& status : all) {
    CHECK_FALSE(status.ok());
    codes.insert(status.code());
  }
  CHECK(codes.size() == std::size(all));
}

TEST_CASE("errors travel up") {
  CHECK(quarter_of(12).value() == 3);
  CHECK(argument_of(quarter_of(6).status()) == "number");
  CHECK(check_quarter(8).ok());
  CHECK(argument_of(check_quarter(7)) == "number");
}

TEST_CASE("ranges include both ends") {
  CHECK(check_range("count", 1, 1, 3).ok());
  CHECK(check_range("count", 3, 1, 3).ok());
  const Status status = check_range("count", 4, 1, 3);
  CHECK(argument_of(status) == "count");
  CHECK(std::string(status.message()) == "count: got 4, expected 1 to 3");
  CHECK(argument_of(check_range("count", 0, 1, 3)) == "count");
}

}  // namespace
}  // namespace foldkv
