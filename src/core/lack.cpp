#include "core/lack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace syslab {
namespace {

constexpr std::size_t kLongest = 200;  // of a name

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// As Python writes a path of names: no text that somebody made up gets further.
bool is_path(std::string_view text) {
  return text.size() <= kLongest && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
         });
}

}  // namespace

bool is_of_torch(std::string_view path) { return path == "torch" || path.starts_with("torch."); }

std::string_view to_string(LackKind kind) {
  switch (kind) {
    case LackKind::attribute:
      return "attribute";
    case LackKind::argument:
      return "argument";
    case LackKind::dtype:
      return "dtype";
    case LackKind::module:
      return "module";
    case LackKind::package:
      return "package";
    case LackKind::python:
      return "python";
  }
  return "attribute";
}

std::optional<LackKind> lack_kind_of(std::string_view word) {
  const auto found = std::ranges::find(kLackKinds, word, [](LackKind kind) { return to_string(kind); });
  return found == kLackKinds.end() ? std::nullopt : std::optional(*found);
}

std::string Lack::text() const {
  const std::string here = torch == "none" || torch.empty() ? "this torch" : "torch " + torch;
  switch (kind) {
    case LackKind::attribute:
      return fmt::format("{} has no {}.{}", is_of_torch(of) ? here : "this Python", of, name);
    case LackKind::argument:
      return fmt::format("{} has no argument '{}' of {}", here, name, of);
    case LackKind::dtype:
      return fmt::format("{} does not compute {} in {}", here, of, name);
    case LackKind::module:
      return is_of_torch(name) ? fmt::format("{} has no {}", here, name)
                               : fmt::format("this Python has no package '{}'", name);
    case LackKind::package:
      return fmt::format("the installed package '{}' does not work here, with {}", name, here);
    case LackKind::python:
      return "this Python is older than the submission requires";
  }
  return {};
}

Json to_json(const Lack& lack) {
  return {{"kind", std::string(to_string(lack.kind))},
          {"of", lack.of},
          {"name", lack.name},
          {"torch", lack.torch},
          {"declared", lack.declared}};
}

std::optional<Lack> claim_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto kind = lack_kind_of(text_of(json, "kind"));
  Lack claim{.kind = kind.value_or(LackKind::attribute), .of = text_of(json, "of"), .name = text_of(json, "name")};
  const bool is_whole = claim.kind == LackKind::module || claim.kind == LackKind::python || !claim.of.empty();
  if (!kind || !is_whole || claim.name.empty() || !is_path(claim.of) || !is_path(claim.name)) return std::nullopt;
  return claim;
}

std::optional<Lack> lack_of(const Json& json) {
  std::optional<Lack> lack = claim_of(json);
  if (!lack) return std::nullopt;
  lack->torch = text_of(json, "torch");
  const auto declared = json.find("declared");
  lack->declared = declared != json.end() && declared->is_boolean() && declared->get<bool>();
  return lack;
}

}  // namespace syslab
