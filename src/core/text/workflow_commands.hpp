// GitHub's runner reads what a job prints, and obeys: a line that begins with "::", behind spaces, too, and "##["
// anywhere are commands ("::stop-commands::…" would keep a gate from telling anything).
#pragma once

#include <string>
#include <string_view>

namespace syslab {

// The same text without any. Where one began, "\x3a" or "\x23" stands in the place of its first character.
std::string without_workflow_commands(std::string_view text);

bool is_read_by_a_runner();                      // this process is part of such a job (GITHUB_ACTIONS)
std::string obeyed_by_nobody(std::string text);  // there without commands; elsewhere as it is
// JSON as all of it is printed: printable(), and there without commands. Its strings hold the same values afterwards.
std::string printed_json(std::string_view json);

}  // namespace syslab
