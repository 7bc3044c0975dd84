// Declares the options of each verb: what is given is read into `options`.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.hpp"

namespace syslab::cli::grammar {

void declare(CLI::App& app, CheckOptions& options);
void declare(CLI::App& app, RunOptions& options);
void declare(CLI::App& app, PlanOptions& options);
void declare(CLI::App& app, ResumeOptions& options);
void declare(CLI::App& app, ReplayOptions& options);
void declare(CLI::App& app, CompareOptions& options);
void declare(CLI::App& app, BisectOptions& options);
void declare(CLI::App& app, ClaimOptions& options);
void declare(CLI::App& app, VerifyOptions& options);
void declare(CLI::App& app, DiffOptions& options);
void declare(CLI::App& app, GateOptions& options);
void declare(CLI::App& app, GradeOptions& options);
void declare(CLI::App& app, ReportOptions& options);
void declare(CLI::App& app, ListOptions& options);
void declare(CLI::App& app, DescribeOptions& options);
void declare(CLI::App& app, QueryOptions& options);
void declare(CLI::App& app, LogOptions& options);
void declare(CLI::App& app, ShowOptions& options);
void declare(CLI::App& app, PinOptions& options);
void declare(CLI::App& app, MergeOptions& options);
void declare(CLI::App& app, ImportOptions& options);
void declare(CLI::App& app, InitOptions& options);
void declare(CLI::App& app, PruneOptions& options);
void declare(CLI::App& app, PlanBucketsOptions& options);
void declare(CLI::App& app, DoctorOptions& options);
void declare(CLI::App& app, CompletionOptions& options);
void declare(CLI::App& app, WorkerOptions& options);
inline void declare(CLI::App&, EnvOptions&) {}

}  // namespace syslab::cli::grammar
