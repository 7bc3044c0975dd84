// How an attempt at a case ends. Exactly one per attempt.
#pragma once

#include <optional>
#include <string_view>

namespace syslab {

enum class Status { ok, check_failed, unsupported, skipped, oom, timeout, crashed, error, aborted };
std::string_view to_string(Status status);
std::optional<Status> status_of(std::string_view word);
Status parse_status(std::string_view word);  // Error(comm) for another word, with those that are known

}  // namespace syslab
