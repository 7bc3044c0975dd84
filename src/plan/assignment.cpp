#include "plan/assignment.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/text/command_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "core/text/utf8.hpp"
#include "plan/command.hpp"
#include "plan/plan.hpp"

namespace syslab::plan {
namespace {

// A worker is told of files in JSON.
constexpr const char* kNotUtf8 = "its path is not UTF-8; rename the file or its folder";
constexpr std::string_view kAgainst = " against ", kOn = " on ";  // of a function: path_of() writes them

// Where `word` stands right behind a "file.py:name", whatever the folders on the way there are called.
std::size_t find_behind_place(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::string_view before = text.substr(0, at);
    const std::size_t colon = before.rfind(':');
    if (colon == std::string_view::npos || before.find_first_of("/ ", colon) != std::string_view::npos) continue;
    const std::string_view file = before.substr(before.rfind('/') + 1, colon - before.rfind('/') - 1);
    if (file.ends_with(".py") || file.find(".so") != std::string_view::npos) return at;
  }
  return std::string_view::npos;
}

constexpr std::size_t kMostValues = 100'000;  // of one assignment: a longer range is a typing error

[[noreturn]] void malformed(std::string_view text, std::string_view why) {
  throw Error(ErrorKind::usage,
              fmt::format("'{}': {}; write axis=v1,v2 or axis=lo:hi (doubling) or "
                          "axis=lo:hi:step or axis=pow2:lo:hi (exponents), for example seq=128,1024 or seq=pow2:7:12",
                          text, why));
}

[[noreturn]] void refuse_mine(std::string_view text, std::string_view why) {
  throw Error(ErrorKind::usage, fmt::format("--mine '{}': {}; write NAME=kernel.so or NAME=flash.py:Class", text, why));
}

std::int64_t bound(std::string_view whole, const std::string& text) {
  const std::optional<std::int64_t> value = parse_integer(text);
  if (!value) malformed(whole, fmt::format("'{}' is no whole number", text));
  return *value;
}

void expand(std::string_view whole, const std::string& item, std::vector<std::string>& values) {
  const std::vector<std::string> parts = split(item, ':');
  const bool power = parts[0] == "pow2";
  // A colon within a text value does not make a range.
  if (parts.size() == 1 || (!power && !parse_integer(parts[0]))) {
    values.push_back(item);
    return;
  }
  if (parts.size() == 2 && !power) {  // doubled from low to high
    const std::int64_t low = bound(whole, parts[0]), high = bound(whole, parts[1]);
    if (low < 1 || high < low) malformed(whole, fmt::format("'{}' does not rise from low to high, from 1 on", item));
    for (std::int64_t value = low; value <= high; value *= 2) {
      values.push_back(std::to_string(value));
      if (value > high / 2) break;
    }
    return;
  }
  if (parts.size() != 3) malformed(whole, fmt::format("the range '{}' needs two or three parts", item));
  if (power) {
    const std::int64_t low = bound(whole, parts[1]), high = bound(whole, parts[2]);
    if (low < 0 || high > 62 || low > high) {
      malformed(whole, fmt::format("the exponents of '{}' must rise within 0 … 62", item));
    }
    for (std::int64_t exponent = low; exponent <= high; ++exponent) {
      values.push_back(std::to_string(std::int64_t{1} << exponent));
    }
    return;
  }
  const std::int64_t low = bound(whole, parts[0]), high = bound(whole, parts[1]), step = bound(whole, parts[2]);
  if (step <= 0 || high < low) malformed(whole, fmt::format("'{}' does not rise from low to high", item));
  const std::uint64_t steps =
      (static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)) / static_cast<std::uint64_t>(step);
  if (steps >= kMostValues) malformed(whole, fmt::format("'{}' has more than {} values", item, kMostValues));
  for (std::uint64_t i = 0; i <= steps; ++i)
    values.push_back(std::to_string(low + static_cast<std::int64_t>(i) * step));
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  const std::optional<std::uint64_t> magnitude = parse_bytes(negative ? text.substr(1) : text);
  if (!magnitude || *magnitude > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  if (!text.empty() && text.back() == 'B') return std::nullopt;  // "64B" is a size, not a number
  const auto value = static_cast<std::int64_t>(*magnitude);
  return negative ? -value : value;
}

std::optional<Value> typed(std::string_view text, const Value& like) {
  if (std::holds_alternative<bool>(like)) {
    if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
    if (text == "false" || text == "0" || text == "no" || text == "off") return false;
    return std::nullopt;
  }
  if (std::holds_alternative<std::int64_t>(like)) {
    if (const auto integer = parse_integer(text)) return *integer;
    return std::nullopt;
  }
  if (std::holds_alternative<double>(like)) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number - number != 0) return std::nullopt;
    return number;
  }
  if (text.empty()) return std::nullopt;
  return std::string(text);
}

std::string_view type_name(const Value& like) {
  if (std::holds_alternative<bool>(like)) return "true or false";
  if (std::holds_alternative<std::int64_t>(like)) return "whole numbers (suffixes k M G, Ki Mi Gi)";
  if (std::holds_alternative<double>(like)) return "numbers";
  return "texts";
}

AxisAssignment parse_assignment(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) malformed(text, "has no '='");
  AxisAssignment assignment;
  assignment.name = trim(text.substr(0, equals));
  if (assignment.name.empty()) malformed(text, "names no axis");
  for (const std::string& item : split(text.substr(equals + 1), ',')) {
    const std::string value = trim(item);
    if (value.empty()) malformed(text, "has an empty value");
    expand(text, value, assignment.values);
  }
  return assignment;
}

std::string parse_python_place(std::string_view option, std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorKind::usage,
                fmt::format("{} '{}': {}; write {} file.py:name", option, one_line(text), why, option));
  };
  const bool of_inputs = option == "--inputs";
  const std::string whole = of_inputs && text.ends_with(".json") ? fmt::format("{}:manifest", text) : std::string(text);
  text = whole;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.find('/', colon) != std::string_view::npos || colon + 1 == text.size()) {
    refuse("names nothing in the file, after a ':'");
  }
  const std::filesystem::path path(text.substr(0, colon));
  const bool is_library = path.filename().string().find(".so") != std::string::npos;
  if (path.extension() != ".py" && !(of_inputs ? path.extension() == ".json" : is_library)) {
    refuse(of_inputs ? "is no Python file, nor a manifest in JSON" : "is no Python file, nor a library");
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    refuse(fmt::format("there is no file '{}'", one_line(path.string())));
  const std::string place = std::filesystem::absolute(path).lexically_normal().string();
  if (!is_utf8(place)) refuse(kNotUtf8);
  return place + std::string(text.substr(colon));
}

MineWords split_mine(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw Error(ErrorKind::usage,
                fmt::format("--mine '{0}' has no name before the file, by which it is called in tables; "
                            "write --mine me={0}",
                            equals == 0 ? text.substr(1) : text));
  }
  MineWords words{trim(text.substr(0, equals)), std::string(text.substr(equals + 1)), {}};
  if (words.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") !=
      std::string::npos) {
    refuse_mine(text, "a name has letters, digits, '_', '-' and '.' only");
  }
  const std::size_t colon = words.file.rfind(':');
  if (colon != std::string::npos && words.file.find('/', colon) == std::string::npos) {
    words.inside = words.file.substr(colon + 1);
    words.file.resize(colon);
    if (words.inside.empty()) refuse_mine(text, "names no class after the ':'");
  }
  if (words.file.empty()) refuse_mine(text, "names no file");
  return words;
}

bool names_function(std::string_view text) { return find_behind_place(text, kAgainst) != std::string_view::npos; }

Submitted parse_mine(std::string_view text) {
  if (const std::size_t equals = text.find('='); equals != std::string_view::npos) {
    if (const auto place = parse_command_place(text.substr(equals + 1))) {
      return command_mine(std::string(text.substr(0, equals)), *place);
    }
  }
  if (const std::size_t against = find_behind_place(text, kAgainst); against != std::string_view::npos) {
    const std::string_view rest = text.substr(against + kAgainst.size());
    const std::size_t on = find_behind_place(rest, kOn);
    if (on == std::string_view::npos) throw Error(ErrorKind::usage, fmt::format("--mine '{}' names no inputs", text));
    Submitted mine = compared_with(parse_mine(text.substr(0, against)),
                                   {.reference = parse_python_place("--reference", rest.substr(0, on)),
                                    .inputs = parse_python_place("--inputs", rest.substr(on + kOn.size()))});
    mine.digest = digest_of(mine);
    return mine;
  }
  const MineWords words = split_mine(text);
  const auto refuse = [text](std::string_view why) { refuse_mine(text, why); };
  const std::filesystem::path path(words.file);
  const bool is_source = path.extension() == ".py";
  if (is_source && words.inside.empty()) refuse("a Python file needs the class that computes, after a ':'");
  if (!is_source && !words.inside.empty() && path.filename().string().find(".so") == std::string::npos) {
    refuse("only a .py file takes a ':Class'");
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) refuse(fmt::format("there is no file '{}'", words.file));
  const std::string file = std::filesystem::absolute(path).lexically_normal().string();
  if (!is_utf8(file)) refuse(kNotUtf8);
  Submitted mine = submitted_of(words.name, file, words.inside);
  mine.digest = digest_of(mine);
  return mine;
}

std::string digest_of(const Submitted& mine) {
  if (mine.is_command()) return digest_of_command(mine.path());
  const std::string own = sha256_hex_of_file(mine.path());
  if (!mine.is_function()) return own;
  return sha256_hex(own + sha256_hex_of_file(file_of(mine.comparison()->reference)) +
                    sha256_hex_of_file(file_of(mine.comparison()->inputs)));
}

}  // namespace syslab::plan
