// The write-up: templates whose tables and sentences are queries on the store.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "registry/registry.hpp"
#include "report/table.hpp"
#include "store/store.hpp"

namespace syslab::report {

struct ReportOptions {
  std::vector<std::string> experiments;  // empty: all that the registry has, in order of the hand-out
  std::string handout = "2026";
  Format format = Format::markdown;
};

// The whole report as text. Where nothing was measured it says "not measured", with the command that would.
std::string render(const registry::Registry& registry, const store::Store& store, const ReportOptions& options);

}  // namespace syslab::report
