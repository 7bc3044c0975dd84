#include "ops/attention/foreign.hpp"

#include <array>
#include <utility>

#include "core/first_of_a_process.hpp"
#include "ops/attention/rungs.hpp"

namespace syslab::attention {

namespace {

Company::Of asked_in;

Params options_of(const Problem& problem) {
  const std::int64_t causal = problem.mask == Mask::none ? 0 : problem.mask == Mask::top_left ? 1 : 2;
  Params options{{"causal", causal}, {"scale", static_cast<double>(problem.effective_scale())}};
  Company::add_to(options);
  return options;
}

}  // namespace

Company::Company(Of of) { asked_in = std::move(of); }

Company::~Company() { asked_in = {}; }

void Company::add_to(Params& options) {
  if (asked_in.streams > 1) options.set("streams", static_cast<std::int64_t>(asked_in.streams));
  if (asked_in.interleaved) {
    const Problem& other = *asked_in.interleaved;
    options.set("interleaved", true);
    options.set("interleaved_causal", other.mask != Mask::none);
    options.set("interleaved_queries", other.seq_q);
    options.set("interleaved_keys", other.seq_k);
    options.set("interleaved_width", other.head_dim);
  }
  if (!asked_in.gradient.empty()) options.set("gradient", std::string(asked_in.gradient));
  if (std::exchange(asked_in.first, false)) options.set(std::string(kFirstOfAProcess), true);
}

Rung foreign_rung(std::string name, std::string language, std::string digest, std::shared_ptr<CallChannel> channel) {
  Rung rung;
  rung.name = std::move(name);
  rung.teaches = "an implementation in another process";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.deterministic = false;  // it promises nothing
  rung.language = std::move(language);
  rung.digest = std::move(digest);
  rung.supports = [dtypes = rung.dtypes](const Problem& problem, Pass) { return refuse_dtype(dtypes, problem); };
  const auto last = std::make_shared<Nanoseconds>();
  rung.last_call_time = [last] { return *last; };
  rung.forward = [channel, last](const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
    const std::array<NamedInput, 3> inputs{{{"q", args.q}, {"k", args.k}, {"v", args.v}}};
    const std::array<NamedOutput, 2> outputs{{{"out", args.out}, {"lse", args.lse}}};
    *last = channel->call("attention_forward", inputs, outputs, options_of(problem));
  };
  rung.backward = [channel, last](const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream) {
    const std::array<NamedInput, 6> inputs{
        {{"q", args.q}, {"k", args.k}, {"v", args.v}, {"out", args.out}, {"lse", args.lse}, {"dout", args.dout}}};
    const std::array<NamedOutput, 3> outputs{{{"dq", args.dq}, {"dk", args.dk}, {"dv", args.dv}}};
    *last = channel->call("attention_backward", inputs, outputs, options_of(problem));
  };
  return rung;
}

}  // namespace syslab::attention
