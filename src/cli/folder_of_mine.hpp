// A hand-out's repository where a verb wants implementations: one, or all that answer a hand-out.
#pragma once

#include <filesystem>
#include <string>

#include "plan/plan.hpp"
#include "session/context.hpp"
#include "session/options.hpp"

namespace syslab::cli {

// The interpreter that a folder chooses for itself (its .venv, or `named` by its syslab.toml), if it may; else empty,
// and why on standard error. What runs by it could otherwise read and write whatever this user may.
std::string python_of_folder(const Console& console, const std::filesystem::path& root, const std::string& named = {});

// Each `--mine me=FOLDER` becomes the function of its adapters.py that answers the experiments named, and says so; its
// interpreter is the folder's own unless one is named. What names no folder stays. Error(usage) where no function
// answers them, or several do, for a zip, which has to be unpacked first, and where the one interpreter that serves all
// would be the environment of one folder alone.
SelectionOptions with_adapters(const Context& context, SelectionOptions options);

// Of a hand-out as a whole: each function of each folder's adapters.py that is written and has a place here joins the
// experiments that it answers; says which do, and which do not for what reason. `memory_limit` is of the process that
// imports the file. Error(usage) where none of a folder's can join, and for what is no folder, which does not say what
// it answers.
plan::Selection select_for_handout(const Context& context, SelectionOptions options, const std::string& memory_limit);

}  // namespace syslab::cli
