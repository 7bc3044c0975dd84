// The dtype check of a rung's `supports`: only listed dtypes.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "core/dtype.hpp"
#include "ops/rung.hpp"

namespace syslab::ops {

// "naive takes fp32, fp16, not fp64"; nothing if the rung lists the dtype.
inline std::optional<std::string> refused_dtype(const RungInfo& info, DType dtype) {
  if (std::find(info.dtypes.begin(), info.dtypes.end(), dtype) != info.dtypes.end()) return std::nullopt;
  std::string known;
  for (const DType one : info.dtypes) known.append(known.empty() ? "" : ", ").append(to_string(one));
  return info.name + " takes " + known + ", not " + std::string(to_string(dtype));
}

// For problems with their dtype in `member`, in every pass.
template <typename Problem>
auto supports_dtypes(const RungInfo& info, DType Problem::*member) {
  return [info, member](const Problem& problem, const auto&...) { return refused_dtype(info, problem.*member); };
}

}  // namespace syslab::ops
