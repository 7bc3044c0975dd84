// Every way in which a case can go wrong, on purpose: the tests of the runner ask for them by name.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "registry/registry.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::experiment_selftest_faults {
namespace {

using worker::CaseContext;

// The descriptor of the protocol, for faults that write past it: the only pipe above the standard streams that is open
// for writing.
int protocol_descriptor() {
  for (int fd = STDERR_FILENO + 1; fd < 64; ++fd) {
    struct stat info {};
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_WRONLY && ::fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode)) return fd;
  }
  throw Error(ErrorKind::internal, "this worker does not write to a pipe");
}

void write_raw(std::string_view bytes) {
  if (::write(protocol_descriptor(), bytes.data(), bytes.size()) < 0) throw std::runtime_error("cannot write");
}

[[noreturn]] void die_by(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  ::raise(signal);
  std::abort();
}

// Touches the memory that it allocates, so that an allocation that only reserves memory does not count.
void use_up_memory() {
  std::vector<std::vector<char>> taken;
  for (std::size_t mebibytes = 0; mebibytes < 65536; mebibytes += 64) taken.emplace_back(64U << 20, '\1');
}

void passed(CaseContext& context) {
  worker::CheckRecord check;
  check.name = "selftest";
  check.outcome = Outcome::passed;
  check.cases_run = 1;
  context.emit(check);
}

void deep_facts(CaseContext& context) {
  constexpr std::size_t kLists = 98;  // as deep as a message may be
  passed(context);
  context.emit(worker::FactRecord{"{\"deep\":" + std::string(kLists, '[') + std::string(kLists, ']') + "}"});
}

const std::map<std::string, std::function<void(CaseContext&)>, std::less<>>& faults() {
  static const std::map<std::string, std::function<void(CaseContext&)>, std::less<>> table{
      {"none", [](CaseContext& context) { context.metric("answer", "1", 42.0); }},
      {"throw", [](CaseContext&) { throw Error(ErrorKind::device, "the fault 'throw' was asked for", "cudaMalloc"); }},
      {"oom", [](CaseContext&) { throw Error(ErrorKind::oom, "needs 242 GiB, there are 80"); }},
      {"bad_alloc", [](CaseContext&) { throw std::bad_alloc(); }},
      {"eat_memory", [](CaseContext&) { use_up_memory(); }},
      {"terminate", [](CaseContext&) { std::thread([] { throw std::bad_alloc(); }).join(); }},
      {"hang", [](CaseContext&) { std::this_thread::sleep_for(std::chrono::hours(1)); }},
      {"kill", [](CaseContext&) { die_by(SIGKILL); }},
      {"segv", [](CaseContext&) { die_by(SIGSEGV); }},
      {"nan", [](CaseContext& context) { context.metric("answer", "1", std::numeric_limits<double>::quiet_NaN()); }},
      {"half_record", [](CaseContext&) { write_raw(std::string_view("\x40\0\0\0{\"type\":\"metr", 17)), ::_exit(0); }},
      {"exit", [](CaseContext&) { std::fputs("leaving early\n", stderr), ::_exit(3); }},
      {"garbage", [](CaseContext&) { write_raw("Hello from the kernel\n"); }},
      {"bad_record", [](CaseContext&) { write_raw(std::string_view("\x13\0\0\0{\"type\":\"metrik\"}  ", 23)); }},
      {"deep_facts", deep_facts},
      {"print",
       [](CaseContext&) {
         std::puts("a print from a kernel");
         std::fflush(stdout);
       }},
      {"chatter",
       [](CaseContext&) {
         for (int i = 0; i < 20000; ++i) std::fprintf(stderr, "line %d of many\n", i);
       }},
      {"babble",
       [](CaseContext& context) {
         while (true) context.progress(0.5, "still talking");
       }},
      {"shout",
       [](CaseContext&) {
         while (true) std::fputs("a line without end ", stderr);
       }},
      {"flood",
       [](CaseContext& context) {
         worker::ArtifactRecord artifact{"log", "text/plain", std::string(4U << 20, 'x')};
         while (true) context.emit(artifact);
       }},
      {"check_failed",
       [](CaseContext& context) {
         worker::CheckRecord check;
         check.name = "selftest";
         check.outcome = Outcome::falsified;
         check.message = "out[3] is 7, expected 8";
         context.emit(check);
         throw worker::CheckFailed(check.message);
       }},
      {"unsupported", [](CaseContext&) { throw worker::Unsupported("needs 6 GPUs"); }},
      {"unchecked", [](CaseContext&) {}},
      {"crash_after_end", [](CaseContext&) { std::atexit([] { die_by(SIGSEGV); }); }},
      {"grandchild",
       [](CaseContext&) {
         if (std::system("sleep 300 &") != 0) throw std::runtime_error("no shell");
       }},
  };
  return table;
}

void run_case(CaseContext& context) {
  const std::string fault = context.params().text("fault");
  if (fault != "unchecked" && fault != "check_failed") passed(context);
  context.progress(0.5, "about to meet the fault '" + fault + "'");
  faults().at(fault)(context);
}

registry::Experiment describe() {
  return registry::experiment("selftest_faults")
      .title("Faults on purpose")
      .question("Does every way of failing end in its status, with the reason, and does the sweep go on?")
      .tags({"selftest"})
      .closed_axis("fault", {std::string("none")}, "what goes wrong",
                   [] {
                     Values names;
                     for (const auto& [name, body] : faults()) {
                       if (name != "none") names.emplace_back(name);
                     }
                     return names;
                   }())
      .implementation({.name = "selftest", .teaches = "how a worker dies"})
      .metric("answer", "1", "a number to find again in the store")
      .runs(run_case);
}
SYSLAB_EXPERIMENT(selftest_faults, describe);

}  // namespace
}  // namespace syslab::experiment_selftest_faults
