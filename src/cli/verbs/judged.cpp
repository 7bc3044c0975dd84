#include "cli/verbs/judged.hpp"

#include <unistd.h>

#include "capi/plugin_channel.hpp"
#include "judge/walls.hpp"
#include "worker/judged/serve_calls.hpp"

namespace syslab::cli {

int serve_library(const std::string& mine) {
  const std::size_t mark = mine.find('=');
  const std::string library = mark == std::string::npos ? mine : mine.substr(mark + 1);
  const std::string name = mark == 0 || mark == std::string::npos ? library : mine.substr(0, mark);
  return worker::serve_calls(STDIN_FILENO, STDOUT_FILENO, name, [&](device::Stream stream) {
    if (judge::walls_wanted()) judge::deny_processes();
    return capi::plugin_callee(name, library, stream);
  });
}

}  // namespace syslab::cli
