#include "core/ids.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/text/json_text.hpp"

namespace syslab {
namespace {

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  while (::getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    if (errno != EINTR) throw_errno(ErrorKind::internal, "draw random bits for an id", errno, "getrandom");
  }
  return bits;
}

// The 60 bits that sort: 48 of milliseconds and 12 of a counter (RFC 9562, 6.2, method 1), so that ids made within one
// millisecond, or while the clock steps back, still sort in the order of making.
std::uint64_t next_sortable() {
  static std::mutex mutex;
  static std::uint64_t last = 0;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  // The counter starts in its lower half: room for 2048 ids before it borrows from the next millisecond.
  const std::uint64_t fresh = (milliseconds << 12) | (random_bits() & 0x7ff);
  const std::lock_guard lock(mutex);
  last = std::max(last + 1, fresh);
  return last;
}

}  // namespace

std::string new_uuid7() {
  const std::uint64_t sortable = next_sortable();
  const std::uint64_t milliseconds = sortable >> 12;
  const std::uint64_t tail = (random_bits() & 0x3fffffffffffffffULL) | 0x8000000000000000ULL;  // variant 10
  return fmt::format("{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}", milliseconds >> 16, milliseconds & 0xffff,
                     sortable & 0xfff, tail >> 48, tail & 0xffffffffffffULL);
}

std::string case_uid(std::string_view experiment, std::string_view version, const Params& params) {
  const Json identity{{"experiment", experiment}, {"version", version}, {"params", params.to_json()}};
  return sha256_hex(json_text(identity));
}

}  // namespace syslab
