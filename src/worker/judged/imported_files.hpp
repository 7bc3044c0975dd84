// Which files a user's Python file imports, found by reading it. What a judged process says of itself may be forged.
#pragma once

#include <string>
#include <vector>

namespace syslab::worker {

// Real paths of the user's files that the file at `path` imports by name, and that those import
// (src/python/syslab_imports.py). Empty of what is no Python, or cannot be read. Asked once a process and path.
const std::vector<std::string>& imported_files(const std::string& path);

}  // namespace syslab::worker
