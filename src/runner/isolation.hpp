// Which cases share a worker process.
#pragma once

#include <string_view>

namespace syslab::runner {

// `per_case`: none. `reuse`: one worker takes cases until one ends otherwise than ok, check_failed or unsupported; then
// it is replaced, because that case may have left a corrupt state. `by_device`: GPU cases share one, since a process
// takes half a second to initialise CUDA, and each CPU case has its own.
enum class Isolation { by_device, per_case, reuse };
std::string_view to_string(Isolation isolation);   // "device", "case", "reuse"
Isolation parse_isolation(std::string_view text);  // Error(usage) for another word

}  // namespace syslab::runner
