#include "worker/judged/argument_watch.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

namespace syslab::worker {
namespace {

constexpr std::size_t kLeastBytes = 32;                  // of what does not repeat by chance
constexpr std::size_t kBlock = 64, kLongestUnit = 4096;  // bytes
constexpr std::size_t kFewestPlaces = 1 << 16, kMostPlaces = 1 << 20;
constexpr std::size_t kCallsKept = 16;  // whose units have places
constexpr double kRepeats = 0.1, kEqual = 0.5;

constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::max<std::uint64_t>(std::hash<std::string_view>{}(text), 1);  // 0: an empty place
}

bool is_constant(std::span<const std::byte> row, std::size_t item) {
  return std::memcmp(row.data(), row.data() + item, row.size() - item) == 0;
}

}  // namespace

ArgumentWatch::ArgumentWatch(std::vector<Argument> arguments) {
  for (Argument& one : arguments) {
    Watched watched{.argument = std::move(one)};
    const std::vector<std::int64_t>& shape = watched.argument.shape;
    const std::size_t item = watched.argument.item_bytes;
    watched.bytes = item * static_cast<std::size_t>(
                               std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
    if (shape.size() > 1) watched.row_bytes = item * static_cast<std::size_t>(shape.back());
    const bool short_rows = watched.row_bytes < kLeastBytes;
    watched.unit_bytes = short_rows ? kBlock : std::min(watched.row_bytes, kLongestUnit);
    const std::size_t units = watched.bytes / watched.unit_bytes + 1;
    watched.seen.resize(std::clamp(std::bit_ceil(kCallsKept * units), kFewestPlaces, kMostPlaces));
    watched.one_in = std::max<std::uint64_t>(kCallsKept * units / watched.seen.size(), 1);
    watched.places = RepeatedPlaces(watched.bytes, item);
    watched_.push_back(std::move(watched));
  }
}

void ArgumentWatch::take(std::size_t argument, std::span<const std::byte> content) {
  Watched& one = watched_[argument];
  if (one.bytes < kLeastBytes || content.size() < one.bytes) return;
  content = content.first(one.bytes);
  const double came_again = std::max(repeated(one, content), one.places.take(content));
  if (one.calls > 0) one.repeated += came_again;
  one.equal += equal_rows(one, content);
  ++one.calls;
}

// Of the content's units, the part that an earlier call had anywhere; all of them where an earlier call had the same
// content, however long ago. A call's own units count only for later ones.
double ArgumentWatch::repeated(Watched& one, std::span<const std::byte> content) {
  std::vector<std::uint64_t> hashes;  // of one in so many units, chosen by what they hold
  std::uint64_t whole = 0;
  for (std::size_t at = 0; at < content.size(); at += one.unit_bytes) {
    const std::uint64_t hash = hash_of(content.subspan(at, std::min(one.unit_bytes, content.size() - at)));
    whole = (std::rotl(whole, 7) ^ hash) * kOdd;
    if ((hash >> 32U) % one.one_in == 0) hashes.push_back(hash);
  }
  const bool is_new = one.contents.insert(whole).second;
  const auto place = [&](std::uint64_t hash) -> std::uint64_t& { return one.seen[hash & (one.seen.size() - 1)]; };
  const auto again = std::ranges::count_if(hashes, [&](std::uint64_t hash) { return place(hash) == hash; });
  for (const std::uint64_t hash : hashes) place(hash) = hash;
  if (!is_new) return 1;
  return hashes.empty() ? 0 : static_cast<double>(again) / static_cast<double>(hashes.size());
}

double ArgumentWatch::equal_rows(const Watched& one, std::span<const std::byte> content) {
  const std::size_t item = one.argument.item_bytes;
  if (one.row_bytes < kLeastBytes) return is_constant(content, item) ? 1 : 0;
  std::vector<std::uint64_t> different;
  const std::size_t rows = content.size() / one.row_bytes;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<const std::byte> row = content.subspan(i * one.row_bytes, one.row_bytes);
    if (!is_constant(row, item)) different.push_back(hash_of(row));
  }
  std::ranges::sort(different);
  const auto left = std::unique(different.begin(), different.end()) - different.begin();
  return 1 - static_cast<double>(left) / static_cast<double>(rows);
}

std::vector<stats::TimingWarning> ArgumentWatch::warnings() const {
  using stats::WarningCode;
  std::vector<stats::TimingWarning> found;
  const bool others_vary = std::ranges::any_of(watched_, [](const Watched& one) { return one.contents.size() > 1; });
  for (const Watched& one : watched_) {
    const auto calls = static_cast<double>(one.calls);
    const bool stays = one.calls > 1 && one.contents.size() == 1;
    if (stays && others_vary) {
      found.push_back({WarningCode::argument_constant, {}, one.argument.name, 0});
    } else if (one.calls > 1 && one.repeated / (calls - 1) >= kRepeats) {
      found.push_back({WarningCode::arguments_repeat, {}, one.argument.name, one.repeated / (calls - 1)});
    }
    if (one.calls > 0 && one.equal / calls >= kEqual) {
      found.push_back({WarningCode::rows_equal, {}, one.argument.name, one.equal / calls});
    }
  }
  return found;
}

}  // namespace syslab::worker
