#include "session/this_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/build_info.hpp"
#include "core/text/json_text.hpp"
#include "runner/nvml.hpp"
#include "runner/request.hpp"
#include "session/capture.hpp"

namespace syslab::cli {
namespace {

bool anything_on_a_gpu(const registry::Registry& registry) {
  for (const registry::Experiment& experiment : registry.experiments()) {
    for (const registry::Implementation& it : experiment.implementations) {
      if (it.device == DeviceKind::cuda) return true;
    }
  }
  return false;
}

// Both edges of the memory's clock carry data.
double memory_speed(const Json& gpu) {
  return 2.0 * 1e6 * gpu.value("memory_mhz_max", 0.0) * gpu.value("memory_bus_bits", 0.0) / 8.0;
}

plan::Machine without(std::string why) {
  plan::Machine machine;
  machine.why_no_gpu = std::move(why);
  return machine;
}

}  // namespace

plan::Machine machine_from(const std::string& probe_json, double gpu_bytes_per_s) {
  const Json probe = json_or_discarded(probe_json);
  if (!probe.is_object()) return without("its probe gave no answer; `syslab worker --probe` shows what it says");
  const Json gpus = probe.value("gpus", Json::array());
  if (gpus.empty()) {
    return without(probe.value("why_none", std::string("CUDA finds none")) +
                   "; is CUDA_VISIBLE_DEVICES set, and does nvidia-smi work?");
  }
  const Json& first = gpus.front();  // the one that CUDA calls 0
  plan::Machine machine;
  machine.gpu = first.value("name", std::string("an unnamed GPU"));
  machine.sm = first.value("sm", 0);
  machine.gpus = static_cast<int>(gpus.size());
  machine.gpu_memory_bytes = first.value("memory_bytes", std::uint64_t{0});
  machine.gpu_bytes_per_s = gpu_bytes_per_s;
  machine.why_no_gpu.clear();
  return machine;
}

plan::Machine this_machine(const registry::Registry& registry) {
  if (!build_info().cuda) return without("this build has no CUDA; configure with -Dcuda=enabled where nvcc is");
  const Json facts = runner::nvml_facts();
  const Json gpus = facts.value("gpu", Json::array());
  if (gpus.empty()) {
    const std::string missing = facts.value(Json::json_pointer("/cuda/missing"), std::string());
    return without(missing.empty() ? "the NVIDIA driver lists none on this machine; run it where there is one"
                                   : fmt::format("this machine has no usable NVIDIA driver ({}); run it where there is "
                                                 "one, or install the driver and see whether nvidia-smi works",
                                                 missing));
  }
  if (!anything_on_a_gpu(registry)) return without("nothing here runs on one");
  std::vector<std::string> command = runner::own_worker_command();
  command.emplace_back("--probe");
  return machine_from(output_of(command).value_or(""), memory_speed(gpus.front()));
}

plan::Machine machine_of(const Context& context, bool gpu) {
  plan::Machine machine = gpu ? this_machine(context.registry) : plan::Machine{};
  if (context.places != nullptr) {
    machine.ranks = context.places->ranks();
    if (machine.has_gpu()) machine.gpus = context.places->gpus();
  }
  return machine;
}

}  // namespace syslab::cli
