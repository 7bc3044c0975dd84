// What is wrong with a library before anybody loads it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syslab::cli {

// Why `path` cannot be a plug-in: it is no shared library, or exports not what syslab.h wants. Empty: nothing is known
// to be wrong; what else the loader may refuse, the cases tell.
std::string library_problem(const std::string& path);
// Why a library has no such symbol to call; empty: nothing is known to be wrong.
std::string symbol_problem(const std::string& path, const std::string& symbol);

// Names that a 64-bit shared library defines for others, as its dynamic symbols list them, in their order; none where
// that cannot be read. Nothing of the file is run.
std::optional<std::vector<std::string>> exported_names(const std::string& path);

}  // namespace syslab::cli
