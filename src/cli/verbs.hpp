// The verbs: one function each, in a file of its name. Each prints its results and returns what the shell is told.
#pragma once

#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/options.hpp"
#include "registry/registry.hpp"
#include "runner/places.hpp"

namespace syslab::cli {

// What every verb may use.
struct Context {
  const registry::Registry& registry;
  const GlobalOptions& global;
  const Console& console;
  std::vector<std::string> arguments;  // the command line, for the record
  runner::Places* places = nullptr;    // of ranks, where a launcher has started several processes
};

Exit execute(const Context& context, const ListOptions& options);
Exit execute(const Context& context, const DescribeOptions& options);
Exit execute(const Context& context, const PlanOptions& options);
Exit execute(const Context& context, const PlanBucketsOptions& options);
Exit execute(const Context& context, const RunOptions& options);
Exit execute(const Context& context, const CheckOptions& options);
Exit execute(const Context& context, const ResumeOptions& options);
Exit execute(const Context& context, const ReplayOptions& options);
Exit execute(const Context& context, const CompareOptions& options);
Exit execute(const Context& context, const DiffOptions& options);
Exit execute(const Context& context, const PinOptions& options);
Exit execute(const Context& context, const GateOptions& options);
Exit execute(const Context& context, const ReportOptions& options);
Exit execute(const Context& context, const QueryOptions& options);
Exit execute(const Context& context, const MergeOptions& options);
Exit execute(const Context& context, const ImportOptions& options);
Exit execute(const Context& context, const PruneOptions& options);
Exit execute(const Context& context, const EnvOptions& options);
Exit execute(const Context& context, const DoctorOptions& options);
Exit execute(const Context& context, const WorkerOptions& options);

}  // namespace syslab::cli
