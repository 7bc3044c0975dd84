#include "grade/leaderboard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>

namespace syslab::grade {
namespace {

constexpr std::size_t kAbove = 3;

constexpr std::array<std::string_view, 32> kHow{"amber", "bold",  "brisk", "calm",  "clear", "cosy",  "deft",  "dusky",
                                                "early", "fair",  "fleet", "fond",  "glad",  "green", "happy", "hazel",
                                                "ivory", "jolly", "keen",  "kind",  "light", "lucky", "mild",  "noble",
                                                "plain", "quick", "quiet", "royal", "sunny", "swift", "tidy",  "warm"};
constexpr std::array<std::string_view, 32> kWhat{
    "badger", "beaver", "bison",  "crane",   "curlew", "dolphin", "falcon", "finch",  "fox",    "gecko", "hare",
    "heron",  "ibis",   "jackal", "kestrel", "lark",   "lemur",   "lynx",   "magpie", "marten", "mole",  "newt",
    "otter",  "owl",    "plover", "raven",   "robin",  "seal",    "stork",  "swan",   "tapir",  "wren"};

std::string alias_of(const std::string& id, const Key& key, int attempt) {
  const Mac mac = mac_of(key, {id, "\n", std::to_string(attempt)});
  const unsigned number = (mac[2] * 256U + mac[3]) % 1000U;
  return fmt::format("{}-{}-{:03}", kHow[mac[0] % kHow.size()], kWhat[mac[1] % kWhat.size()], number);
}

}  // namespace

void rank(std::vector<Ranked>& all) {
  // Equal ratios: by alias, which says nothing about who it is.
  std::ranges::sort(all, {}, [](const Ranked& one) { return std::tie(one.timing.ratio, one.alias, one.id); });
  std::map<int, int> holders;
  for (Ranked& one : all) {
    const auto faster =
        std::ranges::count_if(all, [&](const Ranked& other) { return other.timing.high < one.timing.least(); });
    one.place = static_cast<int>(faster) + 1;
    ++holders[one.place];
  }
  for (Ranked& one : all) one.shared = holders[one.place] > 1;
}

std::vector<Ranked> around(const std::vector<Ranked>& all, const std::string& id) {
  const auto own = std::ranges::find(all, id, &Ranked::id);
  if (own == all.end()) return {};
  const auto before = std::min(kAbove, static_cast<std::size_t>(own - all.begin()));
  return {own - static_cast<std::ptrdiff_t>(before), own + 1};
}

double ordering_number(const std::vector<Ranked>& all, const Ranked& one) {
  if (all.size() == 1) {
    const double step = std::log(most_doubt(one.timing.launches));
    return std::exp(step * std::floor(std::log(one.timing.ratio) / step));
  }
  std::map<int, double> fastest;  // of each place
  for (const Ranked& other : all) fastest.emplace(other.place, other.timing.ratio);
  double number = 0;
  for (const auto& [place, ratio] : fastest) {
    if (place <= one.place) number = std::max(number, ratio);
  }
  return number;
}

std::map<std::string, std::string> aliases(const std::vector<std::string>& ids, const Key& key) {
  std::map<std::string, std::string> found;
  std::set<std::string> taken;
  for (const std::string& id : std::set<std::string>(ids.begin(), ids.end())) {
    std::string alias;
    for (int attempt = 0; !taken.insert(alias = alias_of(id, key, attempt)).second;) ++attempt;
    found[id] = alias;
  }
  return found;
}

}  // namespace syslab::grade
