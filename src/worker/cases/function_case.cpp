#include "worker/cases/function_case.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/declares_domain.hpp"
#include "core/refusal.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "worker/cases/bursts.hpp"
#include "worker/cases/function_cases.hpp"
#include "worker/cases/operator_case.hpp"
#include "worker/judged/argument_watch.hpp"
#include "worker/judged/foreign.hpp"
#include "worker/judged/imported_files.hpp"
#include "worker/wire/fields.hpp"

namespace syslab::worker {
namespace {

// What the reference's process said of the case when it started.
struct Described {
  std::vector<TensorSpec> inputs, outputs;
  Params options;                   // of every call of the function
  std::string function{kFunction};  // on the wire
  double flops = 0, bytes = 0;
  bool probes = false;          // the bound is derived by changing the arguments
  bool ties = false;            // an output is of integers, of which several may be equally right
  bool declares = false;        // the case has an rtol, an atol or terms of its own
  std::int64_t long_terms = 0;  // that it declares, if they are more than `summable`
  std::int64_t summable = 0;    // numbers that a sum may be of
};

// From this part of an output's elements on a declared bound as large as they are is told. Of right bounds it is small,
// except of results that are mostly small against their largest.
constexpr double kToldAsZero = 0.5;
constexpr int kProbes = 4;  // of a whole bound (src/python/syslab_reference.py)

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
  if (fields.text_or("pass", "forward") == "backward") found.function = kFunctionBackward;
  found.probes = fields.text_or("bound", "") == "derived" && fields.text_or("reference_in", "") == "float64";
  found.ties = domain.value("ties", false);
  const bool terms = domain.value("terms_declared", false);
  found.declares = terms || fields.text_or("bound", "") == "declared";
  found.summable = domain.value("summable", std::int64_t{0});
  if (const auto declared = domain.value("terms", std::int64_t{0}); terms && declared > found.summable) {
    found.long_terms = declared;
  }
  found.flops = fields.optional_number("flops").value_or(0);
  found.bytes = fields.optional_number("bytes").value_or(0);
  return found;
}

// Of the signature, which has them in their own dtypes and shapes; on the wire they are flat.
std::vector<ArgumentWatch::Argument> arguments_of(const Params& options) {
  const auto item_bytes = [](const std::string& dtype) -> std::size_t {
    if (dtype == "bool" || dtype.ends_with("int8")) return 1;
    if (dtype.ends_with("128")) return 16;
    return dtype.ends_with("64") ? 8 : dtype.ends_with("32") ? 4 : 2;
  };
  std::vector<ArgumentWatch::Argument> arguments;
  const Json signature = parse_json(options.text("signature"));
  for (const Json& each : signature.at("tensors")) {
    arguments.push_back({each.at("name").get<std::string>(), item_bytes(each.at("dtype").get<std::string>()),
                         each.at("shape").get<std::vector<std::int64_t>>()});
  }
  return arguments;
}

std::vector<std::string> texts(const Json& domain, const char* name) {
  std::vector<std::string> found;
  for (const Json& each : domain.value(name, Json::array())) {
    if (each.is_string()) found.push_back(printable(each.get<std::string>()));
  }
  return found;
}

// What the file imports by name is read here: a process that runs the file could say that it has loaded nothing.
std::set<std::string> files_of(const Json& domain, const std::string& file) {
  std::set<std::string> files;
  for (const auto& list : {texts(domain, "files"), imported_files(file)}) files.insert(list.begin(), list.end());
  return files;
}

// What the reference's process has loaded of what the function is made of, and what a file has replaced there. One file
// that has both, as whoever reads it sees, is no news.
std::vector<stats::TimingWarning> ties(const Json& reference, const Json& function, const Submitted& mine) {
  std::vector<stats::TimingWarning> found;
  std::error_code failed;
  const auto place = [&](const std::string& text) { return std::filesystem::weakly_canonical(text, failed).string(); };
  const std::string own = place(mine.path()), its = place(file_of(mine.comparison()->reference));
  if (own != its) {
    std::set<std::string> parts = files_of(function, own);
    parts.insert(own);
    for (const std::string& file : files_of(reference, its)) {
      if (file == its || !parts.contains(file)) continue;
      const std::string name = std::filesystem::path(file).filename().string();
      found.push_back({stats::WarningCode::reference_shares_code, {}, name, 0});
    }
  }
  for (const std::string& name : texts(reference, "patched")) {
    found.push_back({stats::WarningCode::library_patched, {}, name, 0});
  }
  return found;
}

// The part of the elements that are not zero for which zero would be a right answer. It is 0 if all are zero.
double passes_as_zero(const Expected& expected) {
  std::int64_t all = 0, passes = 0;
  for (std::size_t i = 0; i < expected.value.size(); ++i) {
    const double size = std::abs(expected.value[i]);
    if (!std::isfinite(size) || size == 0) continue;
    ++all;
    if (expected.tolerance[i] >= size) ++passes;
  }
  return all == 0 ? 0 : static_cast<double>(passes) / static_cast<double>(all);
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
        watch_(arguments_of(described_.options)),
        function_(context.channel()),
        probes_(context.probes(context.params().text(kFunctionCase))),
        as_zero_(described_.outputs.size()) {
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
    if (described_.ties) {
      made.expect_ties = [this](const Inputs& in, const Outputs& out) { return expect(in, kProbes, out); };
    }
    made.self_time = [this] { return elapsed_; };
    made.flops = described_.flops;
    made.bytes = described_.bytes;
    return made;
  }

  // After its calls: what the arguments were, and what its two processes share.
  std::vector<stats::TimingWarning> warnings() const {
    std::vector<stats::TimingWarning> found = watch_.warnings();
    const auto* declares = dynamic_cast<const DeclaresDomain*>(function_.get());
    stats::add_warnings(found, ties(reference_->declared_domain(),
                                    declares ? declares->declared_domain() : Json::object(), *context_.request().mine));
    for (std::size_t i = 0; i < described_.outputs.size(); ++i) {
      if (as_zero_[i] < kToldAsZero) continue;
      found.push_back({stats::WarningCode::bound_exceeds_values, {}, described_.outputs[i].name, as_zero_[i]});
    }
    if (described_.long_terms > 0) {
      found.push_back({stats::WarningCode::terms_exceed_inputs,
                       {},
                       std::to_string(described_.summable),
                       static_cast<double>(described_.long_terms)});
    }
    return found;
  }

  // Follows the message about a wrong value if bounds may leave out how results move with the arguments.
  std::string about_bounds() const {
    if (misbehaved_ || reference_->declared_domain().value("bound", "") != "rounding") return "";
    return "\nthe shapes of the reference's results change with the last bits of its arguments: bounds may be of "
           "rounding alone, and integers must then match exactly; declare rtol and atol if the function rounds more";
  }

  Json facts() const {
    const Json& domain = reference_->declared_domain();
    return {{"reference_in", domain.value("reference_in", "")},
            {"bound", domain.value("bound", "")},
            {"bounds_too_narrow", too_narrow_},
            {"terms", domain.value("terms", std::int64_t{0})}};
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
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(described_.inputs[i].bytes());
      watch_.take(i, {static_cast<const std::byte*>(inputs[i].data), bytes});
    }
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
      reference_->call("shapes", inputs, {}, {});  // fails if the reference's results have other shapes, too
      misbehaved_ = true;
      context_.emit(
          CheckRecord{.name = "conduct", .outcome = Outcome::falsified, .cases_run = 1, .message = error.what()});
      throw CheckFailed(error.what());
    }
  }

  // With no change of the arguments at first, with one where that did not do, and no more where one does not, either.
  std::vector<Expected> narrowly(const Inputs& in) {
    constexpr int kMost = 1;
    asked_narrowly_ = probes_ <= kMost;
    return asked_narrowly_ ? expect(in, probes_) : std::vector<Expected>();
  }

  // `seen`: outputs that the reference may prefer to its own where they are equally right; none: it is not asked to.
  std::vector<Expected> expect(const Inputs& in, int probes, const Outputs& seen = {}) {
    std::vector<NamedInput> inputs;
    for (std::size_t i = 0; i < in.size(); ++i) inputs.push_back({described_.inputs[i].name, in[i]});
    std::vector<std::string> seen_names;
    for (std::size_t i = 0; i < seen.size(); ++i) seen_names.push_back("seen:" + described_.outputs[i].name);
    for (std::size_t i = 0; i < seen.size(); ++i) inputs.push_back({seen_names[i], seen[i]});
    std::vector<Expected> expected;
    for (const TensorSpec& output : described_.outputs) {
      const auto count = static_cast<std::size_t>(output.shape.elements());
      expected.push_back({.value = std::vector<double>(count),
                          .tolerance = std::vector<double>(count),
                          .own_tolerance = std::vector<double>(count)});
    }
    std::vector<std::string> names;
    for (const TensorSpec& output : described_.outputs) {
      names.push_back("value:" + output.name);
      names.push_back("tolerance:" + output.name);
      names.push_back("own_tolerance:" + output.name);
    }
    std::vector<NamedOutput> outputs;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Shape flat{described_.outputs[i].shape.elements()};
      const std::array parts{&expected[i].value, &expected[i].tolerance, &expected[i].own_tolerance};
      for (std::size_t part = 0; part < parts.size(); ++part) {
        outputs.push_back({names[parts.size() * i + part], TensorView(parts[part]->data(), DType::f64, flat)});
      }
    }
    reference_->call(seen.empty() ? "expect" : "expect_ties", inputs, outputs, {{"probes", std::int64_t{probes}}});
    // By the whole bounds alone, which decide.
    for (std::size_t i = 0; described_.declares && probes == kProbes && i < expected.size(); ++i) {
      as_zero_[i] = std::max(as_zero_[i], passes_as_zero(expected[i]));
    }
    return expected;
  }

  CaseContext& context_;
  std::shared_ptr<ForeignWorker> reference_;
  Described described_;
  ArgumentWatch watch_;
  std::shared_ptr<CallChannel> function_;
  std::uint64_t made_ = 0;
  bool examined_ = false;
  bool misbehaved_ = false;  // a call did what it may not do, and its results were not looked at
  int& probes_;
  int too_narrow_ = 0;           // of the answers that did not do
  std::vector<double> as_zero_;  // of each output the largest passes_as_zero() so far
  bool asked_narrowly_ = false;  // and the answer did not do, if the whole is asked for next
  Nanoseconds elapsed_{};
};

}  // namespace

void run_function_case(CaseContext& context) {
  const std::optional<Submitted>& mine = context.request().mine;
  if (!mine || !mine->is_function()) {
    throw Error(ErrorKind::usage,
                fmt::format("{} is about a function of yours: --mine NAME=file.py:function --reference "
                            "file.py:function --inputs file.py:cases",
                            context.request().experiment));
  }
  const KeepsMemory keeps;
  FunctionCase made(context);
  try {
    run_operator_case(context, made.operation());
  } catch (const CheckFailed& failed) {
    throw CheckFailed(failed.what() + made.about_bounds());
  }
  context.warn(made.warnings());
  context.emit(FactRecord{json_text(made.facts())});
}

}  // namespace syslab::worker
