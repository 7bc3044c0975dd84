// Names that a user gives and that tables print.
#pragma once

#include <string>

namespace syslab {

// Error(usage) for more characters than a table has room for; `what` names it in the message: "--author".
void require_short_name(const std::string& what, const std::string& name);

}  // namespace syslab
