// Arguments as a person types them (core/text/text.hpp has the usual form).
#pragma once

#include <string>

namespace syslab {

enum class ShellSigns {
  printable,  // whatever a terminal or a page shows as it is
  ascii,      // for pages whose fonts have no other letters
};

// In single quotes if a shell would interpret the word, in $'…' with octal escapes if some of it cannot be shown. A
// shell reads exactly the word again.
std::string shell_word(const std::string& word, ShellSigns signs);

}  // namespace syslab
