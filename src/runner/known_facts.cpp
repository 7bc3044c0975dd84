#include "runner/known_facts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/text/printable.hpp"
#include "runner/variables.hpp"

namespace syslab::runner {
namespace {

constexpr std::string_view kVariables = "/env/";

constexpr std::array kFacts{
    Fact{"/container"},
    Fact{"/cpu/model"},
    Fact{"/cpu/logical", FactType::count},
    Fact{"/cpu/usable", FactType::count},
    Fact{"/cpu/cores", FactType::count},
    Fact{"/cpu/sockets", FactType::count},
    Fact{"/cpu/virtual_machine", FactType::flag},
    Fact{"/cpu/features", FactType::texts},
    Fact{"/cpu/l1d_bytes", FactType::count},
    Fact{"/cpu/l2_bytes", FactType::count},
    Fact{"/cpu/l3_bytes", FactType::count},
    Fact{"/cpu/governor"},
    Fact{"/cpu/max_khz"},
    Fact{"/cpu/no_turbo"},
    Fact{"/cpu/smt"},
    Fact{"/cpu/numa_nodes"},
    Fact{"/cuda/driver"},
    Fact{"/cuda/driver_cuda"},
    Fact{"/cuda/missing"},
    Fact{"/env/*"},
    Fact{"/gpu/*/name"},
    Fact{"/gpu/*/uuid"},
    Fact{"/gpu/*/pci"},
    Fact{"/gpu/*/memory_bytes", FactType::count},
    Fact{"/gpu/*/compute_capability"},
    Fact{"/gpu/*/cuda_cores", FactType::count},
    Fact{"/gpu/*/memory_bus_bits", FactType::count},
    Fact{"/gpu/*/power_limit_w", FactType::number},
    Fact{"/gpu/*/power_limit_default_w", FactType::number},
    Fact{"/gpu/*/persistence_mode", FactType::count},
    Fact{"/gpu/*/compute_mode", FactType::count},
    Fact{"/gpu/*/ecc", FactType::flag},
    Fact{"/gpu/*/mig", FactType::flag},
    Fact{"/gpu/*/sm_mhz_max", FactType::count},
    Fact{"/gpu/*/memory_mhz_max", FactType::count},
    Fact{"/gpu/*/sm_mhz_application", FactType::count},
    Fact{"/gpu/*/memory_mhz_application", FactType::count},
    Fact{"/host/os"},
    Fact{"/host/kernel"},
    Fact{"/host/machine"},
    Fact{"/libraries/glibc"},
    Fact{"/limits/address_space_bytes", FactType::limit},
    Fact{"/limits/locked_memory_bytes", FactType::limit},
    Fact{"/limits/stack_bytes", FactType::limit},
    Fact{"/limits/open_files", FactType::limit},
    Fact{"/limits/file_bytes", FactType::limit},
    Fact{"/limits/processes", FactType::limit},
    Fact{"/limits/cgroup_memory"},
    Fact{"/limits/cgroup_cpu"},
    Fact{"/memory/page_bytes", FactType::count},
    Fact{"/memory/total_bytes", FactType::count},
    Fact{"/memory/transparent_huge_pages"},
};

bool is_count(const Json& value) {
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
}

bool is_of_type(const Json& value, const FactType type) {
  switch (type) {
    case FactType::text:
      return value.is_string();
    case FactType::texts:
      return value.is_array() && std::ranges::all_of(value, [](const Json& one) { return one.is_string(); });
    case FactType::count:
      return is_count(value);
    case FactType::number:
      return value.is_number() && value.get<double>() >= 0;
    case FactType::flag:
      return value.is_boolean();
    case FactType::limit:
      return is_count(value) || value == "unlimited";
  }
  return false;
}

bool is_fact(const Json& value, const std::string& path, const std::string& pattern) {
  if (path.starts_with(kVariables)) {
    return value.is_string() && is_storable_variable(path.substr(kVariables.size()), value.get<std::string>());
  }
  const auto* const known = std::ranges::find(kFacts, pattern, &Fact::path);
  return known != kFacts.end() && is_of_type(value, known->type);
}

// Whether facts may stand below: "/cpu", "/gpu", "/gpu/*".
bool is_part(const Json& value, const std::string& pattern) {
  const bool of_list =
      std::ranges::any_of(kFacts, [&](const Fact& one) { return one.path.starts_with(pattern + "/*/"); });
  return of_list ? value.is_array() : value.is_object() && std::ranges::any_of(kFacts, [&](const Fact& one) {
                                        return one.path.starts_with(pattern + "/");
                                      });
}

void collect(std::vector<std::string>& unknown, const Json& value, const std::string& path,
             const std::string& pattern) {
  if (!is_part(value, pattern)) {
    if (!is_fact(value, path, pattern)) unknown.push_back(path);
    return;
  }
  for (const auto& [key, each] : value.items()) {
    collect(unknown, each, path + "/" + key, pattern + (value.is_array() ? "/*" : "/" + key));
  }
}

}  // namespace

std::span<const Fact> facts_told_to_strangers() { return kFacts; }

std::vector<std::string> unknown_facts(const Json& facts) {
  std::vector<std::string> unknown;
  collect(unknown, facts, "", "");
  return unknown;
}

Json printable_facts(const Json& facts) {
  if (facts.is_string()) return one_line(facts.get<std::string>());
  if (!facts.is_structured()) return facts;
  Json printable = facts.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : facts.items()) {
    if (facts.is_array()) {
      printable.push_back(printable_facts(value));
    } else {
      printable[one_line(key)] = printable_facts(value);
    }
  }
  return printable;
}

}  // namespace syslab::runner
