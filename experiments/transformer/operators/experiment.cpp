// operators: what lies between the model's matrix products, one by one, compared with a copy of as many bytes; the
// question is in README.md in this folder.
#include <algorithm>

#include "capi/implementation.hpp"
#include "experiments/transformer/operators/asked.hpp"
#include "ops/copy/copy.hpp"
#include "registry/ladder.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "worker/cases/law_case.hpp"
#include "worker/cases/operator_case.hpp"

namespace syslab::experiment_operators {
namespace {

using operators::Asked;
using operators::Operator;
using registry::number;
using registry::text;

constexpr std::string_view kCopy = "copy_";  // before the name of a rung that copies

bool copies(std::string_view implementation) { return implementation.starts_with(kCopy); }

// As many bytes read as written, together as many as the operator moves.
copy::Problem copy_of(const Operation& operation) {
  return {std::max<std::int64_t>(1, static_cast<std::int64_t>(operation.bytes) / 16), DType::f64};
}

Operation any_operation(const Params& params) {
  const Operator& one = operators::find(params.text("operator"));
  return one.operation(operators::asked_from(params), one.implementations.front().name);
}

void run_mine(worker::CaseContext& context) {
  const auto channel = std::make_shared<ops::TimedChannel>(context.channel());
  const ops::ForeignImplementation mine = capi::foreign_implementation(context, channel);
  if (context.is_law()) return worker::run_law(context, operators::of_law(context.request().law).laws_of_mine(mine));
  const Operator& one = operators::find(context.params().text("operator"));
  if (!one.operation_of_mine) throw worker::Unsupported("nobody's own can join " + one.name);
  Asked asked = operators::asked_from(context.params());
  asked.seed = context.request().seed;
  if (const auto reason = one.refusal_of_mine(asked, mine)) throw worker::Unsupported(*reason);
  Operation made = ops::timed_elsewhere(one.operation_of_mine(asked, mine), channel);
  const auto ours = std::ranges::find_if(one.implementations, [&](const registry::Implementation& rung) {
    return rung.device == DeviceKind::cpu && !one.refusal(asked, rung.name);
  });
  if (ours != one.implementations.end()) {
    made = ops::seen_beside(std::move(made), one.operation(asked, ours->name));
  }
  worker::run_operator_case(context, made);
}

void run_case(worker::CaseContext& context) {
  if (context.request().mine) return run_mine(context);
  const std::string& name = context.request().implementation;
  if (context.is_law()) return worker::run_law(context, operators::of_law(context.request().law).laws(name));
  if (copies(name)) {
    const copy::Rung& rung = copy::find_rung(name.substr(kCopy.size()));
    const copy::Problem problem = copy_of(any_operation(context.params()));
    if (const auto reason = rung.supports(problem)) throw worker::Unsupported(*reason);
    return worker::run_operator_case(context, copy::operation(problem, rung));
  }
  const Operator& one = operators::find(context.params().text("operator"));
  Asked asked = operators::asked_from(context.params());
  asked.seed = context.request().seed;
  if (const auto reason = one.refusal(asked, name)) throw worker::Unsupported(*reason);
  worker::run_operator_case(context, one.operation(asked, name));
}

bool has_no_such_pass(const Params& params, std::string_view) {
  return std::ranges::count(operators::find(params.text("operator")).passes, params.text("pass")) == 0;
}

bool is_ours(std::string_view implementation) {
  return copies(implementation) ||
         std::ranges::any_of(operators::all(), [&](const Operator& one) { return one.has_rung(implementation); });
}

bool has_no_such_rung(const Params& params, std::string_view implementation) {
  if (copies(implementation) || !is_ours(implementation)) return false;
  return !operators::find(params.text("operator")).has_rung(implementation);
}

bool nobody_can_join(const Params& params, std::string_view implementation) {
  return !is_ours(implementation) && !operators::find(params.text("operator")).operation_of_mine;
}

std::vector<LawInfo> laws() {
  std::vector<LawInfo> list;
  for (const Operator& one : operators::all()) list.insert(list.end(), one.law_list.begin(), one.law_list.end());
  return list;
}

bool is_law_of(std::string_view law, std::string_view implementation) {
  return operators::of_law(law).has_rung(implementation);
}

// As run_case has it: a plan must not promise what the worker refuses.
std::optional<std::string> refusal(const Params& params, std::string_view implementation) {
  if (copies(implementation) || has_no_such_pass(params, implementation) || has_no_such_rung(params, implementation)) {
    return std::nullopt;
  }
  return operators::find(params.text("operator")).refusal(operators::asked_from(params), std::string(implementation));
}

// Every rung of any of the ladders, by name, and the rungs that copy as peers.
std::vector<registry::Implementation> implementations() {
  std::vector<registry::Implementation> shown;
  for (const Operator& one : operators::all()) {
    for (const registry::Implementation& it : one.implementations) {
      if (std::ranges::any_of(shown, [&](const auto& other) { return other.name == it.name; })) continue;
      shown.push_back(it);
      shown.back().teaches = "the rung of this name on each operator's ladder";
    }
  }
  for (registry::Implementation it : registry::implementations_of(copy::ladder())) {
    it.name = std::string(kCopy) + it.name;
    it.teaches = "as many bytes, copied: " + it.teaches;
    it.dtypes.clear();
    it.role = Role::peer;
    shown.push_back(std::move(it));
  }
  return shown;
}

registry::Experiment describe() {
  Values names;
  for (const Operator& one : operators::all()) names.emplace_back(one.name);
  const Values passes{text("forward"), text("backward"), text("both")};
  const Values fastest{
      text("naive"),        text("eager_cuda"),        text("fused_cuda"),      text("copy_threads_streaming"),
      text("copy_threads"), text("copy_cuda_vectors"), text("copy_cuda_memcpy")};
  return registry::experiment("operators")
      .title("Operators other than matrix products")
      .question(
          "How long does each operator of the model that multiplies no matrices take, and what share of the speed of a "
          "copy of as many bytes does it reach?")
      .tags({"model", "kernel"})
      .closed_axis("operator", names, "rms_norm adds the residual; elementwise is a sum of two tensors")
      .closed_axis("pass", passes, "both: the loss and its gradient in one call")
      .axis("rows", {number(2048), number(8192), number(32768)}, "tokens")
      .axis("dim", {number(768), number(2560)}, "elements of a row; of cross_entropy, classes")
      .closed_axis("dtype", {text("fp32"), text("bf16")}, "of activations; of adamw, of the weights' copy",
                   {text("fp16")})
      .preset(
          "smoke",
          {{"rows", {number(64)}},
           {"dim", {number(64)}},
           {"dtype", {text("fp32")}},
           {"device", {text("cpu"), text("cuda")}},
           {"impl", {text("naive"), text("fused_cuda"), text("copy_threads_streaming"), text("copy_cuda_vectors")}}})
      .preset("laptop", {{"rows", {number(2048)}},
                         {"dim", {number(768)}},
                         {"dtype", {text("fp32")}},
                         {"device", {text("cpu")}},
                         {"impl", {text("naive"), text("copy_threads"), text("copy_threads_streaming")}}})
      .preset("paper", {{"impl", fastest}})
      .implementations(implementations())
      .skip_if("this operator has no such pass", has_no_such_pass)
      .skip_if("this operator's ladder has no rung of that name", has_no_such_rung)
      .skip_if("nobody's own can join this operator", nobody_can_join)
      .laws(laws())
      .laws_of(is_law_of)
      .accepts_mine()
      .refuses(refusal)
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("gbps", "GB/s", "each input read and each output written once, over the time")
      .bytes([](const Params& params) { return has_no_such_pass(params, "") ? 0.0 : any_operation(params).bytes; })
      .memory([](const Params& params, std::string_view) {
        return has_no_such_pass(params, "") ? 0.0 : 2 * any_operation(params).bytes;
      })
      .oom_is_an_answer()
      .runs(run_case);
}

SYSLAB_EXPERIMENT(operators, describe);

}  // namespace
}  // namespace syslab::experiment_operators
