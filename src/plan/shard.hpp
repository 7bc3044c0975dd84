// One of several parts of a plan, for several machines: every part is a run, and together they are the whole.
//
//   keep_shard(plan, parse_shard("3/8"));
#pragma once

#include <string_view>

#include "plan/plan.hpp"

namespace syslab::plan {

struct Shard {
  int index = 1, count = 1;  // the index counts from 1
};

Shard parse_shard(std::string_view text);  // "3/8"; Error(usage)

// Keeps every count-th case, from the index-th on, with new indices: neighbours, which take similar times, go to
// different parts. The assignment depends only on the plan, so that all parts agree wherever they are made.
void keep_shard(Plan& plan, const Shard& shard);

}  // namespace syslab::plan
