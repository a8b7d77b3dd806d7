#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "samples/lab/tokenizer.h"

namespace foldkv_lab {

// Joins neighbours until no pair may be joined any more, the best pair first and of equal ones the leftmost: what both
// byte-pair vocabularies (best = lowest rank) and scored vocabularies (best = highest score) do. Takes n log n steps.
//
// Rules has:  using Priority = ...;                       // less is worse
//             std::optional<Priority> may_join(const Symbol& left, const Symbol& right) const;
//             Symbol join(const Symbol& left, const Symbol& right) const;
template <typename Symbol, typename Rules>
class MergeQueue {
 public:
  MergeQueue(std::vector<Symbol> symbols, const Rules& rules) : rules_(rules) {
    nodes_.reserve(symbols.size());
    for (size_t i = 0; i < symbols.size(); ++i) {
      const int64_t index = static_cast<int64_t>(i);
      nodes_.push_back({std::move(symbols[i]), index - 1, i + 1 < symbols.size() ? index + 1 : -1, 0, true});
    }
  }

  [[nodiscard]] std::vector<Symbol> run() {
    for (int64_t left = 0; left + 1 < static_cast<int64_t>(nodes_.size()); ++left) offer(left);
    while (!queue_.empty()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      if (is_current(candidate)) join(candidate.left);
    }
    std::vector<Symbol> symbols;
    for (Node& node : nodes_) {
      if (node.alive) symbols.push_back(std::move(node.symbol));
    }
    return symbols;
  }

 private:
  struct Node {
    Symbol symbol;
    int64_t previous;
    int64_t next;
    int32_t version;  // counts the changes of symbol
    bool alive;
  };
  struct Candidate {
    typename Rules::Priority priority;
    int64_t left;
    int32_t left_version;
    int32_t right_version;

    bool operator<(const Candidate& other) const {
      if (priority < other.priority) return true;
      if (other.priority < priority) return false;
      return left > other.left;
    }
  };

  Node& node(int64_t index) { return nodes_[static_cast<size_t>(index)]; }

  void offer(int64_t left) {
    const Node& first = node(left);
    const Node& second = node(first.next);
    if (const auto priority = rules_.may_join(first.symbol, second.symbol)) {
      queue_.push({*priority, left, first.version, second.version});
    }
  }

  bool is_current(const Candidate& candidate) {
    const Node& left = node(candidate.left);
    return left.alive && left.version == candidate.left_version && left.next >= 0 &&
           node(left.next).version == candidate.right_version;
  }

  void join(int64_t index) {
    Node& left = node(index);
    Node& right = node(left.next);
    left.symbol = rules_.join(left.symbol, right.symbol);
    ++left.version;
    right.alive = false;
    ++right.version;
    left.next = right.next;
    if (left.next >= 0) {
      node(left.next).previous = index;
      offer(index);
    }
    if (left.previous >= 0) offer(left.previous);
  }

  const Rules& rules_;
  std::vector<Node> nodes_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace foldkv_lab
