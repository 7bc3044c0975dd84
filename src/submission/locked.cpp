#include "submission/locked.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "core/text/text.hpp"

namespace syslab::submission {
namespace {

constexpr std::string_view kPackages = "cs336_basics einops einx jaxtyping numpy torch triton";
constexpr std::array kLocked{Locked{"2025", "2.6", kPackages}, Locked{"2026", "2.11", kPackages}};

// {1, 13} of "1.13a0".
std::vector<int> numbers_of(std::string_view version) {
  std::vector<int> numbers;
  for (const char *at = version.data(), *end = at + version.size(); at != end;) {
    int number = 0;
    const auto [next, failed] = std::from_chars(at, end, number);
    if (failed != std::errc()) break;
    numbers.push_back(number);
    if (next == end || *next != '.') break;
    at = next + 1;
  }
  return numbers;
}

}  // namespace

const Locked& locked_of(std::string_view handout) {
  const auto found = std::ranges::find(kLocked, handout, &Locked::handout);
  return found == kLocked.end() ? kLocked.back() : *found;
}

bool is_older(std::string_view version, std::string_view than) {
  const std::vector<int> here = numbers_of(version), there = numbers_of(than);
  return !here.empty() && std::ranges::lexicographical_compare(here, there);
}

bool is_of_surroundings(const Lack& lack, std::string_view handout) {
  if (!lack.is_established()) return false;
  const Locked& locked = locked_of(handout);
  const std::string package = lack.name.substr(0, lack.name.find('.'));
  if (lack.kind == LackKind::python) return lack.declared;
  if (lack.kind == LackKind::attribute && !is_of_torch(lack.of)) return lack.declared;  // of Python's own modules
  const bool is_package = lack.kind == LackKind::module || lack.kind == LackKind::package;
  if (!is_package || package == "torch") return is_older(lack.torch, locked.torch);
  const std::vector<std::string> known = split(std::string(locked.packages), ' ');
  return lack.declared || std::ranges::find(known, package) != known.end();
}

}  // namespace syslab::submission
