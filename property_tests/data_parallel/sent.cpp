#include "property_tests/data_parallel/sent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/error.hpp"

namespace syslab::data_parallel {
namespace {

constexpr std::int64_t kFirstOfName = 9;

bool is_of_a_name(char one) {
  constexpr std::string_view kSigns = "_-.";
  return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || (one >= '0' && one <= '9') ||
         kSigns.find(one) != std::string_view::npos;
}

std::string name_from(std::span<const float> numbers) {
  constexpr float kMost = 0x1p24F;
  std::string name;
  for (const float number : numbers) {
    if (!(number > 0 && number < kMost)) break;  // NaN: a row that nobody filled so far
    const auto bytes = static_cast<std::uint32_t>(number);
    for (const unsigned shift : {16U, 8U, 0U}) {
      if (const auto one = static_cast<char>((bytes >> shift) & 0xFFU); is_of_a_name(one)) name += one;
    }
  }
  return name;
}

// "" where it is not known.
std::string place_of(const Sent& one) {
  return one.line > 0 && !one.file.empty() ? fmt::format("{}:{}", one.file, one.line) : "";
}

}  // namespace

std::vector<Sent> sent_by(std::span<const float> rows, std::int64_t rank) {
  const auto row_of = [&](std::int64_t row) {
    return rows.subspan(static_cast<std::size_t>((rank * kSentRows + row) * kSentFields), kSentFields);
  };
  const float first = row_of(0)[0];
  const auto called = first > 0 ? static_cast<std::int64_t>(first) : 0;  // NaN: no rank of ours has written it
  if (called >= kSentRows) {
    throw Error(ErrorKind::check, fmt::format("rank {} called {} collectives; no strategy needs more than {} here",
                                              rank, called, kSentRows - 1));
  }
  std::vector<Sent> list;
  for (std::int64_t row = 1; row <= called; ++row) {
    const std::span<const float> one = row_of(row);
    list.push_back({.step = static_cast<int>(one[0]),
                    .kind = static_cast<Sent::Kind>(static_cast<int>(one[1])),
                    .elements = static_cast<std::int64_t>(one[2]),
                    .bytes = static_cast<std::int64_t>(one[3]),
                    .ready = static_cast<int>(one[4]),
                    .in_backward = one[5] != 0,
                    .asynchronous = one[6] != 0,
                    .waited = one[7] != 0,
                    .line = one[8] > 0 && one[8] < 1e6F ? static_cast<int>(one[8]) : 0,
                    .file = name_from(one.subspan(kFirstOfName))});
  }
  return list;
}

void add_forgotten_wait(Wrong& wrong, const std::vector<Sent>& sent) {
  const auto forgotten = std::ranges::find_if(sent, [](const Sent& one) { return !one.waited; });
  if (forgotten == sent.end()) return;
  const std::string place = place_of(*forgotten);
  const std::string begun = place.empty() ? "" : ", begun at " + place;
  wrong.said += fmt::format(" (no wait() was called for the collective of {} elements of step {}{})",
                            forgotten->elements, forgotten->step, begun);
  wrong.cause += (wrong.cause.empty() ? "" : "; ") + ("no wait() for a collective" + begun);
}

void demand_all_counted(const std::vector<Sent>& sent) {
  const auto found =
      std::ranges::find_if(sent, [](const Sent& one) { return one.kind == Sent::Kind::uncounted && one.step >= 0; });
  if (found == sent.end()) return;
  const std::string place = place_of(*found);
  throw Unsupported(fmt::format("steps send from rank to rank{}, and only collectives of all ranks are counted",
                                place.empty() ? "" : fmt::format(" ({})", place)));
}

}  // namespace syslab::data_parallel
