#include "contract/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/error.hpp"
#include "core/text/printable.hpp"

namespace syslab {
namespace {

constexpr std::array kStatuses{Status::ok,      Status::check_failed, Status::unsupported, Status::skipped, Status::oom,
                               Status::timeout, Status::crashed,      Status::error,       Status::aborted};

}  // namespace

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::check_failed:
      return "check_failed";
    case Status::unsupported:
      return "unsupported";
    case Status::skipped:
      return "skipped";
    case Status::oom:
      return "oom";
    case Status::timeout:
      return "timeout";
    case Status::crashed:
      return "crashed";
    case Status::error:
      return "error";
    case Status::aborted:
      return "aborted";
  }
  return "error";
}

std::optional<Status> status_of(std::string_view word) {
  const auto found = std::ranges::find(kStatuses, word, [](Status one) { return to_string(one); });
  return found == kStatuses.end() ? std::nullopt : std::optional(*found);
}

Status parse_status(std::string_view word) {
  if (const auto status = status_of(word)) return *status;
  std::string known;
  for (const Status one : kStatuses) known += fmt::format("{}{}", known.empty() ? "" : ", ", to_string(one));
  throw Error(ErrorKind::comm, fmt::format("'{}' is no status of an attempt (known: {})", one_line(word), known));
}

}  // namespace syslab
