// ceiling_copy: how many bytes a second this machine moves; the question is in README.md in this folder.
#include "ops/copy/copy.hpp"
#include "property_tests/copy/laws.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "worker/cases/law_case.hpp"
#include "worker/cases/operator_case.hpp"

namespace syslab::experiment_ceiling_copy {
namespace {

using copy::Problem;
using copy::Rung;

// Elements of fp64: a copy only sees bytes, and fewer elements are drawn and compared.
Problem problem_from(const Params& params) {
  const std::int64_t bytes = params.integer("bytes");
  if (bytes < 8 || bytes % 8 != 0) {
    throw Error(ErrorKind::usage, "axis 'bytes' takes a multiple of 8, at least 8");
  }
  return {bytes / 8, DType::f64};
}

void run_case(worker::CaseContext& context) {
  const Rung& rung = copy::find_rung(context.request().implementation);
  if (context.is_law()) return worker::run_law(context, copy::laws(rung));
  const Problem problem = problem_from(context.params());
  if (const auto reason = rung.supports(problem)) throw worker::Unsupported(*reason);
  worker::run_operator_case(context, copy::operation(problem, rung));
}

// 2^low, 2^(low + 2), …, 2^high.
Values every_second_power(int low, int high) {
  Values values;
  for (int exponent = low; exponent <= high; exponent += 2) values.emplace_back(std::int64_t{1} << exponent);
  return values;
}

double traffic(const Params& params) { return copy::traffic_bytes(problem_from(params)); }

registry::Experiment describe() {
  return registry::experiment("ceiling_copy")
      .title("Memory bandwidth ceiling")
      .question(
          "How many bytes a second does this machine copy, from a size that fits the first cache to one that fits "
          "none? "
          "The best rate beyond the caches is the measured ceiling that other tables count in percent of.")
      .protocol("hot")
      .tags({"ceiling", "kernel"})
      .axis("bytes", registry::pow2(12, 28), "of one side, a multiple of 8; as much is read as is written")
      .preset("smoke", {{"bytes", {std::int64_t{1} << 12, std::int64_t{1} << 18}},
                        {"device", {std::string("cpu"), std::string("cuda")}}})
      .preset("laptop", {{"bytes", every_second_power(12, 28)},
                         {"impl", {std::string("memcpy"), std::string("threads_streaming")}}})
      .preset("paper", {{"bytes", registry::pow2(12, 32)}})
      .implementations(registry::implementations_of(copy::ladder()))
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("gbps", "GB/s", "bytes read and bytes written over the time; reading a line to write it is not counted")
      .metric("error_to", "1", "largest |to − from|: 0, or the copy is wrong")
      .laws(copy::law_list())
      .bytes(traffic)
      // The oracle and each look at the output hold a copy, too.
      .memory([](const Params& params, std::string_view) { return 2 * traffic(params); })
      .oom_is_an_answer()
      .runs(run_case);
}
SYSLAB_EXPERIMENT(ceiling_copy, describe);

}  // namespace
}  // namespace syslab::experiment_ceiling_copy
