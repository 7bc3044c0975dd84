// syslab's exit codes. The only place where outcomes become numbers.
#pragma once

#include "contract/status.hpp"
#include "core/error.hpp"

namespace syslab {

enum class Exit {
  well = 0,
  wrong = 1,       // a check or a law failed
  usage = 2,       // the command, or a file it names, is not right
  incomplete = 3,  // cases failed, timed out, or are missing
  tool = 4,        // the store or syslab itself failed
  unclear = 5,     // a comparison without a verdict, or a case without a time
  slower = 6,      // a comparison with a bad one, or a refuted claim
  requeue = 75,    // a scheduler stopped us: what is missing waits for `resume` (EX_TEMPFAIL of sysexits.h)
};

// The one that counts when both happened: 4 > 2 > 75 > 1 > 6 > 3 > 5 > 0. A script that asks for 75 must see it, or the
// rest is never run; `resume` then ends with what was wrong before.
Exit worse(Exit a, Exit b);

Exit exit_of(ErrorKind kind);

// `unsupported`, `skipped`, and an `oom` where the experiment declares it an answer, are not failures.
Exit exit_of(Status status, bool oom_is_an_answer);

}  // namespace syslab
