// `check --mine me=path/to/submission`: every function of its adapters.py by the experiments that it answers, and one
// table at the end.
#pragma once

#include "cli/options.hpp"
#include "core/error.hpp"
#include "plan/plan.hpp"
#include "session/context.hpp"
#include "store/store.hpp"
#include "verdict/exit_code.hpp"

namespace syslab::cli {

struct CheckedOnce {
  Exit exit = Exit::well;
  store::RowId run = 0;
  plan::Plan plan;  // of --mine; without it no cases
};

// -k holds the name of none of the laws that would be searched.
class NoLawNamed : public Error {
 public:
  explicit NoLawNamed(const std::string& message) : Error(ErrorKind::usage, message) {}
};

// One `check` of files and classes: one run. `of_folder`: of one function among others, which have one next command.
CheckedOnce check_once(const Context& context, const CheckOptions& options, bool of_folder);

// Whether each of these is the id of an experiment that a function of this hand-out's adapters.py answers: a pattern
// may mean others, too, and they would go unchecked. True without names.
bool adapters_answer_all(const std::vector<std::string>& names, const std::string& handout);

// --mine names a folder or a zip.
bool names_submission(const CheckOptions& options);
Exit check_submission(const Context& context, const CheckOptions& options);

}  // namespace syslab::cli
