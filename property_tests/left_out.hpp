// What no try of a law that held can draw: "never tried, at any depth" for whoever handed an operator in. An operator's
// never_drawn(rung) puts it together of the constants that its draws use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "check/law.hpp"
#include "core/dtype.hpp"

namespace syslab::property {

std::string above(std::string_view what, std::int64_t largest);                       // "seq > 200"
std::string other_than(std::string_view what, const std::vector<double>& all);        // "eps other than 1e-05, 0.5"
std::string sizes_left_out(std::string_view what, const std::vector<std::int64_t>&);  // "m > 300", and gaps

// "bf16; seq > 200; inputs with inf or NaN": `tried` of fp32, fp16 and bf16, then `parts`.
std::string all_left_out(const std::vector<DType>& tried, std::vector<std::string> parts);

// The result with never_drawn(rung), of a rung that was handed in, under the contract that draws all there is; where a
// hand-out asks the operator and nothing more is asked, with never_drawn(rung, contract).
template <typename Rung>
check::LawResult with_left_out(check::LawResult result, const Rung& rung, const check::LawRequest& request) {
  if (result.outcome != Outcome::passed || !result.message.empty() || rung.digest.empty()) return result;
  if constexpr (requires { never_drawn(rung, request.contract); }) {
    result.finding.never_drawn = never_drawn(rung, request.contract);
  } else {
    if (request.contract == Contract::full) result.finding.never_drawn = never_drawn(rung);
  }
  return result;
}

}  // namespace syslab::property
