// Why a case of several ranks cannot run here: each of them needs a GPU, or a place in the launch, and there are fewer.
#pragma once

#include <optional>
#include <string>

#include "core/text/json.hpp"

namespace syslab {

struct Shortage {
  enum class Of { gpus, ranks } of = Of::ranks;
  int needed = 0;

  std::string text() const;  // "needs 6 GPUs"

  bool operator==(const Shortage&) const = default;
};

Json to_json(const Shortage& shortage);                 // {"gpus": 6}, the fact `needs` of an attempt
std::optional<Shortage> shortage_of(const Json& json);  // nothing where it is none

}  // namespace syslab
