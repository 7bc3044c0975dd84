// Which facts of a machine there are (runner/environment.hpp), for who reads those that a stranger wrote.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"

namespace syslab::runner {

enum class FactType { text, texts, count, number, flag, limit };  // limit: a count or "unlimited"

struct Fact {
  std::string_view path;  // "/cpu/model"; of each GPU "/gpu/*/name"; of all variables "/env/*"
  FactType type = FactType::text;
};

// Those that may leave a machine: no host name. An older syslab told serials of GPUs.
std::span<const Fact> facts_told_to_strangers();

// Paths of what is none of these, or of another type: "/cpu/of". Empty parts are no facts.
std::vector<std::string> unknown_facts(const Json& facts);

// The same facts in one line each, as they can be shown: what a file system or a variable holds may be anything.
Json printable_facts(const Json& facts);

}  // namespace syslab::runner
