#include "worker/function_case.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/json_text.hpp"
#include "core/refusal.hpp"
#include "worker/bursts.hpp"
#include "worker/fields.hpp"
#include "worker/foreign.hpp"
#include "worker/function_cases.hpp"
#include "worker/operator_case.hpp"

namespace syslab::worker {
namespace {

// What the reference's process said of the case when it started.
struct Described {
  std::vector<TensorSpec> inputs, outputs;
  Params options;                     // of every call of the function
  std::string function = "function";  // on the wire; of gradients, function_backward
  double flops = 0, bytes = 0;
  bool probes = false;  // the bound is derived by changing the arguments
};

constexpr int kProbes = 4;  // of a whole bound (tools/python/syslab_reference.py)

std::vector<TensorSpec> specs_from(const Json& list, const Fields& whole) {
  std::vector<TensorSpec> specs;
  for (const Json& each : list) {
    const Fields fields(each, "a tensor of the reference's greeting");
    const std::optional<DType> dtype = parse_dtype(fields.text("dtype"));
    if (!dtype) whole.fail("a tensor has an unknown dtype");
    const std::vector<std::int64_t> shape =
        each.contains("elements") ? std::vector{fields.integer("elements")} : fields.integers_or_none("shape");
    specs.push_back({fields.text("name"), *dtype, Shape(shape)});
  }
  return specs;
}

Described described(const Json& domain, const std::string& planned) {
  const Fields fields(domain, "the reference's greeting");
  if (const std::string problem = fields.text("problem"); problem != planned) {
    throw Error(ErrorKind::usage,
                fmt::format("the case is of {}, and the files are now {}: the reference or its inputs "
                            "have changed; make a new run",
                            planned, problem));
  }
  Described found;
  found.inputs = specs_from(domain.value("inputs", Json::array()), fields);
  found.outputs = specs_from(domain.value("outputs", Json::array()), fields);
  found.options.set("signature", fields.text("signature"));
  found.options.set("outputs", fields.text("results"));
  if (fields.text_or("pass", "forward") == "backward") found.function = "function_backward";
  found.probes = fields.text_or("bound", "") == "derived" && fields.text_or("reference_in", "") == "float64";
  found.flops = fields.optional_number("flops").value_or(0);
  found.bytes = fields.optional_number("bytes").value_or(0);
  return found;
}

// What a case frees it keeps until it ends: results and bounds of large tensors come with every call that is compared,
// and half of a comparison's time would go into clearing new pages for them.
class KeepsMemory {
 public:
  KeepsMemory() {
    ::mallopt(M_MMAP_MAX, 0);
    ::mallopt(M_TRIM_THRESHOLD, -1);
  }
  KeepsMemory(const KeepsMemory&) = delete;
  KeepsMemory& operator=(const KeepsMemory&) = delete;
  ~KeepsMemory() {
    ::mallopt(M_MMAP_MAX, kUsualMaps);
    ::mallopt(M_TRIM_THRESHOLD, kUsualThreshold);
    ::malloc_trim(0);
  }

 private:
  static constexpr int kUsualMaps = 65536, kUsualThreshold = 128 << 10;  // of the GNU C library
};

class FunctionCase {
 public:
  explicit FunctionCase(CaseContext& context)
      : context_(context),
        reference_(reference_while_it_starts(context)),
        described_(described(reference_->declared_domain(), context.params().text(kFunctionProblem))),
        function_(context.channel()),
        probes_(context.probes(context.params().text(kFunctionCase))) {
    if (context.request().starts) context.bursts().started();
  }

  Operation operation() {
    Operation made;
    made.inputs = described_.inputs;
    made.outputs = described_.outputs;
    for (const TensorSpec& input : made.inputs) made.prepared.push_back(input.name);
    made.prepare = [this](std::vector<TensorView>& inputs, device::Stream) { make(inputs); };
    made.call = [this](const Inputs& in, const Outputs& out, device::Stream) { call(in, out); };
    made.expect = [this](const Inputs& in) {
      if (std::exchange(asked_narrowly_, false)) ++probes_, ++too_narrow_;
      return expect(in, kProbes);
    };
    if (described_.probes) made.expect_narrowly = [this](const Inputs& in) { return narrowly(in); };
    made.self_time = [this] { return elapsed_; };
    made.flops = described_.flops;
    made.bytes = described_.bytes;
    return made;
  }

  Json facts() const {
    const Json& domain = reference_->declared_domain();
    return {{"reference_in", domain.value("reference_in", "")},
            {"bound", domain.value("bound", "")},
            {"bounds_too_narrow", too_narrow_},
            {"terms", domain.value("terms", 0)}};
  }

 private:
  // Both import a framework, which takes a second each. Of both the reference's faults are told first.
  static std::shared_ptr<ForeignWorker> reference_while_it_starts(CaseContext& context) {
    context.start_channel();
    return context.reference(context.params().text(kFunctionCase));
  }

  // New content for each time that a call's arguments are renewed; the judged process never learns a seed. The first
  // are checked and are of the run's seed, all others timed.
  void make(std::vector<TensorView>& inputs) {
    std::vector<NamedOutput> made;
    for (std::size_t i = 0; i < inputs.size(); ++i) made.push_back({described_.inputs[i].name, inputs[i]});
    constexpr std::uint64_t kSeeds = 1ULL << 31;  // that every generator takes
    const RandomStream stream = made_ == 0 ? context_.stream("arguments") : context_.unforeseen("arguments");
    const auto seed = static_cast<std::int64_t>(stream.bits(made_++) % kSeeds);
    reference_->call("make", {}, made, {{"seed", seed}});
  }

  void call(const Inputs& in, const Outputs& out) {
    std::vector<NamedInput> inputs;
    std::vector<NamedOutput> outputs;
    for (std::size_t i = 0; i < in.size(); ++i) inputs.push_back({described_.inputs[i].name, in[i]});
    for (std::size_t i = 0; i < out.size(); ++i) outputs.push_back({described_.outputs[i].name, out[i]});
    Params options = described_.options;
    if (!std::exchange(examined_, true)) options.set("examine", true);
    try {
      elapsed_ = function_->call(described_.function, inputs, outputs, options);
    } catch (const Refusal&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::check) throw;
      context_.emit(CheckRecord{.name = "conduct", .outcome = "falsified", .cases_run = 1, .message = error.what()});
      throw CheckFailed(error.what());
    }
  }

  // With no change of the arguments at first, with one where that did not do, and no more where one does not, either.
  std::vector<Expected> narrowly(const Inputs& in) {
    constexpr int kMost = 1;
    asked_narrowly_ = probes_ <= kMost;
    return asked_narrowly_ ? expect(in, probes_) : std::vector<Expected>();
  }

  std::vector<Expected> expect(const Inputs& in, int probes) {
    std::vector<NamedInput> inputs;
    for (std::size_t i = 0; i < in.size(); ++i) inputs.push_back({described_.inputs[i].name, in[i]});
    std::vector<Expected> expected;
    for (const TensorSpec& output : described_.outputs) {
      const auto count = static_cast<std::size_t>(output.shape.elements());
      expected.push_back({std::vector<double>(count), std::vector<double>(count)});
    }
    std::vector<std::string> names;
    for (const TensorSpec& output : described_.outputs) {
      names.push_back("value:" + output.name);
      names.push_back("tolerance:" + output.name);
    }
    std::vector<NamedOutput> outputs;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Shape flat{described_.outputs[i].shape.elements()};
      outputs.push_back({names[2 * i], TensorView(expected[i].value.data(), DType::f64, flat)});
      outputs.push_back({names[2 * i + 1], TensorView(expected[i].tolerance.data(), DType::f64, flat)});
    }
    reference_->call("expect", inputs, outputs, {{"probes", std::int64_t{probes}}});
    return expected;
  }

  CaseContext& context_;
  std::shared_ptr<ForeignWorker> reference_;
  Described described_;
  std::shared_ptr<CallChannel> function_;
  std::uint64_t made_ = 0;
  bool examined_ = false;
  int& probes_;
  int too_narrow_ = 0;           // of the answers that did not do
  bool asked_narrowly_ = false;  // and the answer did not do, if the whole is asked for next
  Nanoseconds elapsed_{};
};

}  // namespace

void run_function_case(CaseContext& context) {
  const std::optional<MineRequest>& mine = context.request().mine;
  if (!mine || !mine->is_function()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} is about a function of yours: --mine NAME=file.py:function --reference "
                            "file.py:function --inputs file.py:cases",
                            context.request().experiment));
  }
  const KeepsMemory keeps;
  FunctionCase made(context);
  run_operator_case(context, made.operation());
  context.emit(FactRecord{json_text(made.facts())});
}

}  // namespace syslab::worker
