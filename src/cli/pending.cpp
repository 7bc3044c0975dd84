// Verbs whose rooms are being built.
#include "cli/verbs.hpp"

namespace syslab::cli {
namespace {

Exit pending(const char* verb) {
  throw Error(ErrorKind::usage, std::string("this build does not have the verb ") + verb);
}

}  // namespace

Exit execute(const Context&, const RunOptions&) { return pending("run"); }
Exit execute(const Context&, const CheckOptions&) { return pending("check"); }
Exit execute(const Context&, const ResumeOptions&) { return pending("resume"); }
Exit execute(const Context&, const ReplayOptions&) { return pending("replay"); }
Exit execute(const Context&, const ReportOptions&) { return pending("report"); }
Exit execute(const Context&, const QueryOptions&) { return pending("query"); }
Exit execute(const Context&, const MergeOptions&) { return pending("merge"); }
Exit execute(const Context&, const EnvOptions&) { return pending("env"); }
Exit execute(const Context&, const DoctorOptions&) { return pending("doctor"); }

}  // namespace syslab::cli
