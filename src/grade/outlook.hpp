// What a batch can come to on this machine, before it is graded: of each submission which functions can be imported,
// and how many points would stay open because this Python lacks something, or there is no GPU.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/lack.hpp"
#include "core/text/json.hpp"
#include "grade/rubric.hpp"
#include "store/cells.hpp"

namespace syslab::grade {

struct Outlook {
  std::string student;
  double points = 0, open = 0;        // that no person gives; of these, those that would stay open
  int functions = 0, importable = 0;  // of the rubric's, those that the submission implements
  std::string torch;                  // the version here; empty: nobody looked
  std::string asks;                   // what its files require of Python and torch
  std::vector<std::string> why;       // points would stay open, or nothing can be graded; each once
  bool is_mostly_open() const { return open > points / 2; }
};

// `record`: of `check --imports-alone`, or of a check that was made before. `half`: what the torch of a CPU lacks, on
// which FSDP is to be asked in fp16; nothing: it lacks nothing, or ranks compute elsewhere.
Outlook outlook_of(const Rubric& rubric, const std::string& student, const Json& record,
                   const std::optional<Lack>& half);

// A row a submission.
store::ResultSet table_of(std::span<const Outlook> all);

// Whether most of the batch would be open: then `grade` stops before it checks anything.
struct BatchOutlook {
  std::int64_t submissions = 0, mostly_open = 0;
  bool stops() const { return mostly_open > submissions / 2; }
  std::string torch;  // the version here
  // "at least 2 of 3 submissions would be mostly open": laws may lack what imports do not need.
  std::string text() const;
};
BatchOutlook outlook_of(std::span<const Outlook> all);

}  // namespace syslab::grade
