// The verbs: one function each, in a file of its name. Each prints its results and returns the exit code.
#pragma once

#include <optional>
#include <string>

#include "cli/options.hpp"
#include "core/text/json.hpp"
#include "session/context.hpp"
#include "verdict/exit_code.hpp"

namespace syslab::cli {

Exit execute(const Context& context, const ListOptions& options);
Exit execute(const Context& context, const DescribeOptions& options);
Exit execute(const Context& context, const PlanOptions& options);
Exit execute(const Context& context, const PlanBucketsOptions& options);
Exit execute(const Context& context, const RunOptions& options);
Exit execute(const Context& context, const CheckOptions& options);
Exit execute(const Context& context, const ResumeOptions& options);
Exit execute(const Context& context, const ReplayOptions& options);
Exit execute(const Context& context, const CompareOptions& options);
Exit execute(const Context& context, const BisectOptions& options);
Exit execute(const Context& context, const ClaimOptions& options);
Exit execute(const Context& context, const VerifyOptions& options);
Exit execute(const Context& context, const DiffOptions& options);
Exit execute(const Context& context, const PinOptions& options);
Exit execute(const Context& context, const GateOptions& options);
Exit execute(const Context& context, const GradeOptions& options);
Exit execute(const Context& context, const ReportOptions& options);
Exit execute(const Context& context, const QueryOptions& options);
Exit execute(const Context& context, const MergeOptions& options);
Exit execute(const Context& context, const ImportOptions& options);
Exit execute(const Context& context, const InitOptions& options);
Exit execute(const Context& context, const PruneOptions& options);
Exit execute(const Context& context, const LogOptions& options);
Exit execute(const Context& context, const ShowOptions& options);
Exit execute(const Context& context, const EnvOptions& options);
Exit execute(const Context& context, const DoctorOptions& options);
Exit execute(const Context& context, const CompletionOptions& options);
Exit execute(const Context& context, const WorkerOptions& options);

// The uid of what a job began, if a scheduler starts it again: the newest run of this very command that lacks
// something.
std::optional<std::string> begun_before_requeue(const Context& context);

// For a process whose workers have something judged: hides it from that, and says on standard error, under --quiet too,
// which walls of SECURITY.md are missing. Every verb that judges calls it before it judges.
void warn_of_missing_walls(const Console& console);
// The same and, with --json, a line of its own: {"type": "walls", "missing": […]}. For verbs that print JSON lines.
void tell_missing_walls(const Console& console);
// For verbs that print one document: "walls_missing", if any is.
void add_missing_walls(Json& document);
std::string missing_walls_in_words();  // empty: none is missing

}  // namespace syslab::cli
