// What a rung's `supports` says of dtypes: those that it lists, and no others.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "core/dtype.hpp"
#include "ops/rung.hpp"

namespace syslab::ops {

// "naive takes fp32, fp16, not fp64"; nothing where the dtype is one of the rung's.
inline std::optional<std::string> refused_dtype(const RungInfo& info, DType dtype) {
  if (std::find(info.dtypes.begin(), info.dtypes.end(), dtype) != info.dtypes.end()) return std::nullopt;
  std::string known;
  for (const DType one : info.dtypes) known.append(known.empty() ? "" : ", ").append(to_string(one));
  return info.name + " takes " + known + ", not " + std::string(to_string(dtype));
}

// For a problem whose dtype is in `member`, in every direction.
template <typename Problem>
auto supports_dtypes(const RungInfo& info, DType Problem::*member) {
  return [info, member](const Problem& problem, const auto&...) { return refused_dtype(info, problem.*member); };
}

}  // namespace syslab::ops
