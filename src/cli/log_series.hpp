// `log EXPERIMENT`: the times of each case over the revisions that measured it, a series for each kind of machine.
#pragma once

#include "cli/options.hpp"
#include "session/context.hpp"
#include "verdict/exit_code.hpp"

namespace syslab::cli {

Exit log_series(const Context& context, const LogOptions& options);

}  // namespace syslab::cli
