#include "property_tests/attention/trial.hpp"

#include "ops/attention/oracle/oracle.hpp"
#include "property_tests/attention/call.hpp"

namespace syslab::attention {

Trial tried(const Subject& subject, const Sample& sample, Pass pass) {
  Trial trial{sample, {}};
  const auto judge = [&](const check::GuardedTensor& tensor, const char* name, const Expected& expected) {
    trial.tensors.push_back({{name, tensor.spec().shape, to_doubles(tensor.view())},
                             expected.value,
                             expected.tolerance,
                             subject.allowed(expected.value, expected.tolerance)});
  };
  if (pass == Pass::forward) {
    const ForwardCall call = call_forward(subject.rung, sample);
    const ForwardOracle oracle =
        forward_oracle(sample.problem, call.q.view(), call.k.view(), call.v.view(), subject.part(sample.problem));
    judge(call.out, "out", oracle.out);
    judge(call.lse, "lse", oracle.lse);
    return trial;
  }
  const BackwardCall call = call_backward(subject.rung, sample);
  const BackwardOracle oracle = backward_oracle(sample.problem, call.forward.q.view(), call.forward.k.view(),
                                                call.forward.v.view(), call.dout.view(), subject.part(sample.problem));
  judge(call.dq, "dq", oracle.dq);
  judge(call.dk, "dk", oracle.dk);
  judge(call.dv, "dv", oracle.dv);
  return trial;
}

std::string wrong_tensors(const Trial& trial) {
  std::string wrong;
  for (const Judged& judged : trial.tensors) wrong += judged.wrong_anywhere() ? '1' : '0';
  return wrong;
}

}  // namespace syslab::attention
