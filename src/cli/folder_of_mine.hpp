// A hand-out's repository where a verb wants one implementation.
#pragma once

#include "session/context.hpp"
#include "session/options.hpp"

namespace syslab::cli {

// Each `--mine me=FOLDER` becomes the function of its adapters.py that answers the experiments named, and says so; its
// interpreter is the folder's own unless one is named. What names no folder stays. Error(usage) where no function
// answers them, or several do, for a zip, which has to be unpacked first, and where the one interpreter that serves all
// would be the environment of one folder alone.
SelectionOptions with_adapters(const Context& context, SelectionOptions options);

}  // namespace syslab::cli
