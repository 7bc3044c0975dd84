#include "worker/judged/guard_pages.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/error.hpp"
#include "worker/judged/shared_segment.hpp"

namespace syslab::worker {
namespace {

// What the signal's handler reads: plain memory, since it may not allocate.
struct Known {
  std::uintptr_t begin = 0, end = 0, behind = 0;
  std::array<char, 24> tensor{};
};
constexpr std::size_t kMost = 16;
std::array<Known, kMost> known;
std::atomic<std::size_t> known_count{0};

// Only what a signal's handler may do.
class Line {
 public:
  void add(const char* text) {
    while (*text != 0 && length_ < text_.size()) text_[length_++] = *text++;
  }
  void add(std::uintptr_t number) {
    std::array<char, 24> digits{};
    std::size_t at = digits.size() - 1;
    do digits[--at] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    add(&digits[at]);
  }
  void write() const { [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text_.data(), length_); }

 private:
  std::array<char, 200> text_{};
  std::size_t length_ = 0;
};

// The exit code of what the processor was doing; 0: it does not tell.
int code_of_access(const void* context) {
#if defined(__x86_64__)
  constexpr greg_t kWrite = 2;  // of the page fault's error code
  const auto* machine = static_cast<const ucontext_t*>(context);
  return (machine->uc_mcontext.gregs[REG_ERR] & kWrite) != 0 ? kWrotePastTheEnd : kReadPastTheEnd;
#else
  static_cast<void>(context);
  return 0;
#endif
}

// What was installed before us: a runtime may live on faults of its own.
struct sigaction before_segv {
}, before_bus{};

// Returns to where the fault happens again, and ends the process this time.
void end_by_default(int signal) { ::signal(signal, SIG_DFL); }

void leave_to(const struct sigaction& before, int signal, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  end_by_default(signal);
  if (info->si_code <= 0) ::raise(signal);  // sent: it would not happen again
}

void tell_fault(int signal, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (std::size_t i = 0; info->si_code > 0 && i < known_count.load(); ++i) {
    const Known& page = known[i];
    if (at < page.begin || at >= page.end) continue;
    Line line;
    const int code = code_of_access(context);
    line.add(code == kReadPastTheEnd ? "a read" : code == kWrotePastTheEnd ? "a write" : "an access");
    line.add(" past the end of '");
    line.add(page.tensor.data());
    line.add("', ");
    line.add(at - page.begin + page.behind);
    line.add(" bytes behind its last\n");
    line.write();
    if (code != 0) ::_exit(code);
    return end_by_default(signal);
  }
  leave_to(signal == SIGSEGV ? before_segv : before_bus, signal, info, context);
}

void listen() {
  static const bool once = [] {
    struct sigaction action {};
    action.sa_sigaction = tell_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigaction(SIGSEGV, &action, &before_segv);
    ::sigaction(SIGBUS, &action, &before_bus);
    return true;
  }();
  static_cast<void>(once);
}

void protect(const GuardPages::Page& page, int allowed) {
  if (::mprotect(page.begin, page_bytes(), allowed) == 0) return;
  throw_errno(ErrorKind::internal, "guard the end of a tensor", errno, "mprotect");
}

}  // namespace

void GuardPages::put(std::vector<Page> pages) {
  if (pages == pages_) return;
  listen();
  known_count = 0;
  for (const Page& page : pages_) protect(page, PROT_READ | PROT_WRITE);
  pages_.clear();
  for (Page& page : pages) {
    protect(page, PROT_NONE);
    pages_.push_back(std::move(page));
  }
  std::size_t count = 0;
  for (const Page& page : pages_) {
    if (count == kMost) break;
    Known& one = known[count++];
    one.begin = reinterpret_cast<std::uintptr_t>(page.begin);
    one.end = one.begin + page_bytes();
    one.behind = page.behind;
    one.tensor = {};
    page.tensor.copy(one.tensor.data(), one.tensor.size() - 1);
  }
  known_count = count;
}

void GuardPages::forget() {
  known_count = 0;
  pages_.clear();
}

}  // namespace syslab::worker
