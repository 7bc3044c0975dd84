// A call that takes a known number of cycles, so that a comparison can be checked against the truth: the same work on
// both sides must not be called different, and a deliberate slowdown must be found.
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "chain.hpp"
#include "device/cuda/launch.hpp"
#include "registry/registry.hpp"
#include "worker/cases/operator_case.hpp"

namespace syslab::experiment_selftest_compare {
namespace {

// x → a·x + c mod 2^64 (Knuth's MMIX constants). Each step needs the one before, so n steps take n times the latency of
// a multiplication and an addition, whatever else the processor could do meanwhile.
struct Step {
  std::uint64_t factor = 6364136223846793005ULL, summand = 1442695040888963407ULL;

  std::uint64_t operator()(std::uint64_t x) const { return factor * x + summand; }
  // First this, then `next`.
  Step then(const Step& next) const { return {next.factor * factor, next.factor * summand + next.summand}; }
};

// The same n steps in log n multiplications: the oracle's exact answer.
Step power(std::int64_t n) {
  Step result{1, 0}, square;
  for (; n > 0; n >>= 1, square = square.then(square)) {
    if ((n & 1) != 0) result = result.then(square);
  }
  return result;
}

std::uint64_t bits_of(double x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// The upper 32 bits, which a double holds exactly.
double visible(std::uint64_t state) { return static_cast<double>(state >> 32); }

std::uint64_t chain(std::uint64_t state, std::int64_t steps) {
  const Step step;
  for (std::int64_t i = 0; i < steps; ++i) state = step(state);
  return state;
}

// The same number of steps through a table of `kTableWords`: each loads from where the last one led. Beyond the first
// level of the caches, where it depends on what a process gets for life which lines collide.
constexpr std::int64_t kTableWords = 1 << 15;  // of 8 bytes: 256 KiB

std::uint64_t walk(std::uint64_t state, std::int64_t steps, const double* table) {
  const Step step;
  for (std::int64_t i = 0; i < steps; ++i) {
    state = step(state ^ bits_of(table[state >> (64 - 15)]));
  }
  return state;
}

// --- a case ---

bool walks(const Params& params) { return params.text("work") == "walk"; }

// A slowdown is a share of the steps, exact to one of them.
std::int64_t steps_of(const Params& params) {
  const double slower = 1 + params.number("slowdown") / 100;
  return std::llround(static_cast<double>(params.integer("steps")) * slower);
}

// Goes wrong after enough calls to be past the check and the shortest warm-up, or in the very first call.
struct Fault {
  std::string kind;
  std::int64_t calls = 0;

  void strike(double& answer) {
    const bool late = ++calls > 40;
    if (kind == "wrong") answer += 1;
    if (!late) return;
    if (kind == "throw") throw std::runtime_error("the fault 'throw' was asked for");
    if (kind == "die") ::raise(SIGKILL);
    if (kind == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  }
};

Operation case_of(const Params& params) {
  const std::int64_t steps = steps_of(params);
  const bool walking = walks(params);
  Operation made;
  made.inputs = {{"start", DType::f64, {1}}};
  if (walking) made.inputs.push_back({"table", DType::f64, {kTableWords}});
  made.outputs = {{"end", DType::f64, {1}}};
  auto fault = std::make_shared<Fault>(Fault{params.text("fault")});
  made.call = [steps, walking, fault](const Inputs& in, const Outputs& out, device::Stream) {
    const std::uint64_t start = bits_of(*in[0].as<double>());
    double& end = *out[0].as<double>();
    end = visible(walking ? walk(start, steps, in[1].as<double>()) : chain(start, steps));
    fault->strike(end);
  };
  // A walk has no short cut, so its oracle takes the same steps.
  made.expect = [steps, walking](const Inputs& in) {
    const std::uint64_t start = bits_of(*in[0].as<double>());
    Expected end;
    end.value = {visible(walking ? walk(start, steps, in[1].as<double>()) : power(steps)(start))};
    end.tolerance = {0};
    return std::vector{end};
  };
  return made;
}

// The chain alone, on a GPU. Faults of the launch strike late, too; where one strikes nothing is written, or the GPU's
// context is lost.
Operation gpu_case_of(const Params& params) {
  if (walks(params)) throw worker::Unsupported("the walk through a table is the host's; work=chain runs on a GPU");
  Operation made = case_of(params);
  made.device = device::Kind::cuda;
  const std::int64_t steps = steps_of(params);
  const std::string kind = params.text("fault");
  const auto fault = std::make_shared<Fault>(Fault{kind});
  made.call = [steps, kind, fault](const Inputs& in, const Outputs& out, device::Stream stream) {
    double unused = 0;
    fault->strike(unused);
    const bool late = fault->calls > 40;
    selftest::GpuFault now = selftest::GpuFault::none;
    if (late && kind == "launch") now = selftest::GpuFault::launch;
    if (late && kind == "illegal") now = selftest::GpuFault::illegal;
    selftest::queue_chain(static_cast<const double*>(in[0].data), steps + (kind == "wrong" ? 1 : 0),
                          static_cast<double*>(out[0].data), now, stream);
  };
  return made;
}

void run_case(worker::CaseContext& context) {
  const Params& params = context.params();
  const bool on_gpu = context.request().implementation == "selftest_cuda";
  worker::run_operator_case(context, on_gpu ? gpu_case_of(params) : case_of(params));
}

registry::Experiment describe() {
  return registry::experiment("selftest_compare")
      .title("Work of known length")
      .question(
          "Is the same work, in two fresh processes, called the same, and is a slowdown found that was put in on "
          "purpose?")
      .tags({"selftest"})
      .axis("steps", {std::int64_t{500'000}}, "of a chain that nothing can shorten: 4 cycles each, about 1 ms in all")
      .axis("slowdown", {0.0}, "percent more steps")
      .closed_axis("work", {std::string("chain")}, "in registers (chain), or through a table of 256 KiB (walk)",
                   {std::string("walk")})
      .closed_axis("fault", {std::string("none")},
                   "what goes wrong, after the check but for `wrong`; launch and illegal on a GPU alone",
                   {std::string("wrong"), std::string("throw"), std::string("die"), std::string("hang"),
                    std::string("launch"), std::string("illegal")})
      .implementation({.name = "selftest", .teaches = "what a comparison can tell apart"})
      .implementation({.name = "selftest_cuda",
                       .teaches = "the same on a GPU",
                       .unavailable = device::built_with_cuda() ? "" : "needs CUDA, which this build has not",
                       .device = DeviceKind::cuda})
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .runs(run_case);
}
SYSLAB_EXPERIMENT(selftest_compare, describe);

}  // namespace
}  // namespace syslab::experiment_selftest_compare
