// Which files a stored run may use when it is run again: the library or Python file of a --mine implementation, and
// what its axes name to be read or written. A database that was handed in or merged must not choose them: recorded
// paths count only in runs that this user's own program wrote.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/text/command_text.hpp"
#include "plan/plan.hpp"
#include "store/store.hpp"

namespace syslab::cli {

enum class ChangedFile { refused, taken };

class MineFiles {
 public:
  // `given`: --mine of this command line. `command`: what is shown with --mine behind it, "syslab resume 0193…".
  MineFiles(const store::Store& store, const std::vector<std::string>& given, std::string command);

  // Of an implementation of the run: the file given for it, else the recorded one. Error(usage) when there is none
  // given and the run is not this user's own; when the recorded file is gone; and, if `changed` says so, when its
  // digest is not the recorded one. A given file is taken with whatever digest it has.
  Submitted find(store::RowId run, const store::ImplementationRow& recorded, ChangedFile changed);

  // Error(usage) when an axis of the run's case names a file and the run is not this user's own.
  void require_may_name_files(store::RowId run, const plan::PlannedCase& planned);

  // Error(usage) when one was given that none of the runs' implementations is called.
  void require_known(const std::vector<std::string>& names) const;

 private:
  // Of --command, whose text and folder are all that is recorded: another program cannot stand in for it.
  Submitted find_command(store::RowId run, const store::ImplementationRow& recorded, const CommandPlace& command,
                         ChangedFile changed);
  bool is_own(store::RowId run);  // the store is asked once

  const store::Store& store_;
  std::map<store::RowId, bool> own_;
  std::vector<Submitted> given_;
  std::string command_;
};

// What a run's implementations that were handed in are called, each once.
std::vector<std::string> mine_names(const std::vector<store::PlanState>& states);

}  // namespace syslab::cli
