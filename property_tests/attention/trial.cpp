#include "property_tests/attention/trial.hpp"

#include <cmath>

#include "ops/attention/oracle/oracle.hpp"
#include "property_tests/attention/call.hpp"

namespace syslab::attention {

Trial tried(const Subject& subject, const Sample& sample, Pass pass, bool with_given) {
  Trial trial{sample, {}, {}};
  const auto judged = [&](const check::GuardedTensor& tensor, const char* name, const Expected& expected,
                          double unit = 1) {
    return Judged{{name, tensor.spec().shape, to_doubles(tensor.view())},    expected.value,     expected.tolerance,
                  subject.allowed(expected.value, expected.tolerance, unit), tensor.unwritten(), unit};
  };
  const auto of_forward = [&](const ForwardCall& call) {
    const ForwardOracle oracle =
        forward_oracle(sample.problem, call.q.view(), call.k.view(), call.v.view(), subject.part(sample.problem));
    return std::vector<Judged>{judged(call.out, "out", oracle.out, sample.value_gain),
                               judged(call.lse, "lse", oracle.lse)};
  };
  if (pass == Pass::forward) {
    trial.tensors = of_forward(call_forward(subject.rung, sample));
    return trial;
  }
  const BackwardCall call = call_backward(subject.rung, sample);
  const BackwardOracle oracle = backward_oracle(sample.problem, call.forward.q.view(), call.forward.k.view(),
                                                call.forward.v.view(), call.dout.view(), subject.part(sample.problem));
  trial.tensors = {judged(call.dq, "dq", oracle.dq, sample.unit_of_scores()),
                   judged(call.dk, "dk", oracle.dk, sample.unit_of_scores()),
                   judged(call.dv, "dv", oracle.dv, sample.gradient_gain)};
  if (with_given) trial.given = of_forward(call.forward);
  return trial;
}

bool same(double found, double expected, double derived, double unit) {
  if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) && std::isnan(expected);
  if (std::isinf(found) || std::isinf(expected)) return found == expected;  // a share of infinity allows everything
  return check::Tally::error_of(found, expected) <=
         std::max(4 * derived, 1e-3 * (std::min(unit, 1.0) + std::abs(expected)));
}

std::string wrong_given(const Trial& trial) {
  std::string wrong;
  for (const Judged& judged : trial.given) {
    if (judged.wrong_anywhere())
      wrong += (wrong.empty() ? "" : " and ") + std::string(&judged == &trial.given[0] ? "O" : "L");
  }
  return wrong;
}

std::string wrong_tensors(const Trial& trial) {
  std::string wrong;
  for (const Judged& judged : trial.tensors) wrong += judged.wrong_anywhere() ? '1' : '0';
  return wrong;
}

}  // namespace syslab::attention
