#include "capi/plugin_channel.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "capi/declared_domain.hpp"
#include "capi/operator_entry.hpp"
#include "capi/plugin.hpp"
#include "core/error.hpp"
#include "core/refusal.hpp"
#include "ops/attention/foreign.hpp"

namespace syslab::capi {
namespace {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Mask;
using attention::Problem;
using attention::Rung;

Mask mask_of(const Params& options) {
  switch (options.integer("causal")) {
    case 0:
      return Mask::none;
    case 1:
      return Mask::top_left;
    default:
      return Mask::bottom_right;
  }
}

bool is_repeatable(const Params& options) { return options.has("deterministic") && options.flag("deterministic"); }

Params options_of(const Problem& problem) {
  const std::int64_t causal = problem.mask == Mask::none ? 0 : problem.mask == Mask::top_left ? 1 : 2;
  return {{"causal", causal}, {"scale", static_cast<double>(problem.scale)}, {"deterministic", problem.repeatable}};
}

template <typename Named>
const Named& named(std::span<const Named> tensors, std::string_view name) {
  for (const Named& one : tensors) {
    if (one.name == name) return one;
  }
  throw Error(ErrorKind::comm, fmt::format("the call has no tensor '{}'", name));
}

Problem problem_of(const ConstTensorView& q, const ConstTensorView& k, const Params& options) {
  return {.batch = q.size(0),
          .heads_q = q.size(1),
          .heads_kv = k.size(1),
          .seq_q = q.size(2),
          .seq_k = k.size(2),
          .head_dim = q.size(3),
          .scale = static_cast<float>(options.number("scale")),
          .mask = mask_of(options),
          .dtype = q.dtype,
          .repeatable = is_repeatable(options)};
}

ops::Workspace workspace_of(std::span<const NamedOutput> outputs, const Params& options) {
  if (!options.has("workspace_bytes")) return {};
  return {named(outputs, "workspace").view.data, static_cast<std::size_t>(options.integer("workspace_bytes"))};
}

class PluginCallee : public Callee {
 public:
  PluginCallee(const std::string& name, const std::filesystem::path& library, device::Stream stream)
      : name_(name),
        stream_(stream),
        operators_(find_operator_entry(name, library)),
        domain_(library_domain(library.string())) {
    if (!operators_ || exports_attention(name, library)) rung_ = load_attention_plugin(name, library, stream.kind);
  }

  Json domain() const override { return domain_; }

  std::function<void()> prepare(std::string_view function, std::span<const NamedInput> inputs,
                                std::span<const NamedOutput> outputs, const Params& options) override {
    if (!function.starts_with("attention_")) {
      if (!operators_) throw Unsupported(fmt::format("'{}' has no syslab_operator, and so no {}", name_, function));
      return operators_->prepare(function, inputs, outputs, options, stream_);
    }
    if (!rung_) throw Unsupported(fmt::format("'{}' has syslab_operator and no attention", name_));
    if (function == "attention_workspace") {
      return [this, options, bytes = named(outputs, "bytes").view] { answer(options, *bytes.as<double>()); };
    }
    const auto in = [&](std::string_view name) { return named(inputs, name).view; };
    const auto out = [&](std::string_view name) { return named(outputs, name).view; };
    const ops::Workspace workspace = workspace_of(outputs, options);
    if (function == "attention_forward") {
      const ForwardArgs args{in("q"), in("k"), in("v"), out("out"), out("lse")};
      return [this, args, workspace, problem = problem_of(args.q, args.k, options)] {
        rung_->forward(problem, args, workspace, stream_);
      };
    }
    if (function == "attention_backward") {
      const BackwardArgs args{in("q"),    in("k"),   in("v"),   in("out"), in("lse"),
                              in("dout"), out("dq"), out("dk"), out("dv")};
      return [this, args, workspace, problem = problem_of(args.q, args.k, options)] {
        rung_->backward(problem, args, workspace, stream_);
      };
    }
    throw Unsupported(fmt::format("a library of syslab.h has no '{}'", function));
  }

 private:
  void answer(const Params& options, double& bytes) const {
    const Problem problem{.batch = options.integer("batch"),
                          .heads_q = options.integer("heads_q"),
                          .heads_kv = options.integer("heads_kv"),
                          .seq_q = options.integer("seq_q"),
                          .seq_k = options.integer("seq_k"),
                          .head_dim = options.integer("head_dim"),
                          .scale = static_cast<float>(options.number("scale")),
                          .mask = mask_of(options),
                          .dtype = parse_dtype(options.text("dtype")).value_or(DType::f32),
                          .repeatable = is_repeatable(options)};
    const Pass pass = options.flag("backward") ? Pass::backward : Pass::forward;
    if (const auto reason = rung_->supports(problem, pass)) throw Unsupported(*reason);
    bytes = static_cast<double>(rung_->workspace_bytes(problem, pass));
  }

  std::string name_;
  device::Stream stream_;
  std::unique_ptr<OperatorEntry> operators_;
  std::optional<Rung> rung_;  // of attention
  Json domain_;
};

// What the library says of a problem; the last answer is kept, since whoever asks whether it takes a problem asks for
// its memory next.
class Answers {
 public:
  struct Answer {
    std::size_t bytes = 0;
    std::optional<std::string> refusal;
  };

  explicit Answers(std::shared_ptr<CallChannel> channel) : channel_(std::move(channel)) {}

  const Answer& to(const Problem& problem, Pass pass) {
    if (asked_ != std::pair(problem, pass)) {
      answer_ = ask(problem, pass);
      asked_ = {problem, pass};
    }
    return answer_;
  }

 private:
  Answer ask(const Problem& problem, Pass pass) const;

  std::shared_ptr<CallChannel> channel_;
  std::optional<std::pair<Problem, Pass>> asked_;
  Answer answer_;
};

Answers::Answer Answers::ask(const Problem& problem, Pass pass) const {
  Params options = options_of(problem);
  options.set("batch", problem.batch);
  options.set("heads_q", problem.heads_q);
  options.set("heads_kv", problem.heads_kv);
  options.set("seq_q", problem.seq_q);
  options.set("seq_k", problem.seq_k);
  options.set("head_dim", problem.head_dim);
  options.set("dtype", std::string(to_string(problem.dtype)));
  options.set("backward", pass == Pass::backward);
  double bytes = 0;
  const std::array<NamedOutput, 1> outputs{{{"bytes", {&bytes, DType::f64, {1}}}}};
  try {
    channel_->call("attention_workspace", {}, outputs, options);
  } catch (const Unsupported& reason) {
    return {.bytes = 0, .refusal = reason.what()};
  }
  constexpr double kMost = 1LL << 50;
  if (!(bytes >= 0 && bytes <= kMost)) {
    throw Refusal(fmt::format("its syslab_attention_workspace asks for {} bytes", bytes), "syslab_attention_workspace");
  }
  return {.bytes = static_cast<std::size_t>(bytes), .refusal = std::nullopt};
}

// Outputs with the lent memory behind them, which is the library's process's own: nothing is copied.
std::vector<NamedOutput> with_workspace(std::vector<NamedOutput> outputs, const ops::Workspace& lent, Params& options) {
  if (lent.bytes == 0) return outputs;
  options.set("workspace_bytes", static_cast<std::int64_t>(lent.bytes));
  const auto elements = static_cast<std::int64_t>((lent.bytes + 3) / 4);
  outputs.push_back({"workspace", TensorView(nullptr, DType::f32, Shape{elements})});
  return outputs;
}

}  // namespace

std::unique_ptr<Callee> plugin_callee(const std::string& name, const std::filesystem::path& library,
                                      device::Stream stream) {
  return std::make_unique<PluginCallee>(name, library, stream);
}

Rung plugin_rung(const std::string& name, const std::filesystem::path& library, std::string digest,
                 std::shared_ptr<CallChannel> channel) {
  Rung rung;
  rung.name = name;
  rung.teaches = "somebody's library: " + library.filename().string();
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.language = "C";
  rung.digest = std::move(digest);
  const auto answers = std::make_shared<Answers>(channel);
  rung.supports = [answers](const Problem& problem, Pass pass) { return answers->to(problem, pass).refusal; };
  rung.workspace_bytes = [answers](const Problem& problem, Pass pass) { return answers->to(problem, pass).bytes; };
  const auto last = std::make_shared<Nanoseconds>();
  rung.last_call_time = [last] { return *last; };
  rung.forward = [channel, last](const Problem& problem, const ForwardArgs& args, ops::Workspace lent, device::Stream) {
    const std::array<NamedInput, 3> inputs{{{"q", args.q}, {"k", args.k}, {"v", args.v}}};
    Params options = options_of(problem);
    const auto outputs = with_workspace({{"out", args.out}, {"lse", args.lse}}, lent, options);
    attention::Company::add_to(options);
    *last = channel->call("attention_forward", inputs, outputs, options);
  };
  rung.backward = [channel, last](const Problem& problem, const BackwardArgs& args, ops::Workspace lent,
                                  device::Stream) {
    const std::array<NamedInput, 6> inputs{
        {{"q", args.q}, {"k", args.k}, {"v", args.v}, {"out", args.out}, {"lse", args.lse}, {"dout", args.dout}}};
    Params options = options_of(problem);
    const auto outputs = with_workspace({{"dq", args.dq}, {"dk", args.dk}, {"dv", args.dv}}, lent, options);
    attention::Company::add_to(options);
    *last = channel->call("attention_backward", inputs, outputs, options);
  };
  return rung;
}

}  // namespace syslab::capi
