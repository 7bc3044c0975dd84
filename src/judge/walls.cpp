#include "judge/walls.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "core/error.hpp"
#include "core/files/state_folder.hpp"
#include "core/process/environment_variable.hpp"
#include "core/process/own_namespaces.hpp"
#include "core/text/path_list.hpp"
#include "judge/landlock.hpp"
#include "judge/other_names.hpp"

namespace syslab::judge {
namespace {

using FilterContext = std::unique_ptr<void, decltype(&::seccomp_release)>;

void demand(int result, std::string_view what) {
  if (result < 0) throw_errno(ErrorKind::internal, fmt::format("make a seccomp filter: {}", what), -result, "seccomp");
}

FilterContext empty_filter() {
  FilterContext filter(::seccomp_init(SCMP_ACT_ALLOW), ::seccomp_release);
  if (!filter) throw Error(ErrorKind::internal, "make a seccomp filter: out of memory", "seccomp_init");
  // A call of another architecture (int 0x80) would end its thread alone, and whoever waits for that thread would wait
  // on.
  demand(::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "calls of 32 bits");
  return filter;
}

// By name, because headers know fewer calls than the library; one that this architecture does not have needs no rule.
template <typename... Conditions>
void deny(const FilterContext& filter, const char* name, int error, Conditions... conditions) {
  const int number = ::seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return;
  demand(::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(static_cast<unsigned>(error)), number, sizeof...(conditions),
                            conditions...),
         name);
}

// What clone() makes anew; the one of time is unshare()'s and clone3()'s alone.
constexpr unsigned kNamespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                    CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};

// Other processes' memory and descriptors, the machine's settings, and ways around all this.
constexpr const char* kDenied[] = {
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "pidfd_getfd",
    "kcmp",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "keyctl",
    "add_key",
    "request_key",
    "mount",
    "umount2",
    "pivot_root",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsmount",
    "mount_setattr",
    "setns",
    "unshare",
    "chroot",
    "open_by_handle_at",
    "settimeofday",
    "clock_settime",
    "sethostname",
    "setdomainname",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    // The kernel's log has the name of each process that crashed, and where: words for whoever reads it later.
    "syslog",
    "iopl",
    "ioperm",
    // What of other processes of this user has no path that Landlock would judge.
    "ioprio_set",
    // It fills the memory that it maps, in one call that a stop does not interrupt. Nobody uses it.
    "remap_file_pages",
    "shmget",
    "shmat",
    "shmctl",
    "semget",
    "semop",
    "semtimedop",
    "semctl",
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
    "mq_open",
    "mq_unlink",
    // They tell the names of what happens in a folder that may not be listed, of which Landlock knows nothing.
    "inotify_add_watch",
    "fanotify_init",
    // Owners and attributes of files, of which Landlock knows nothing.
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
};
// mseal. Calls have one number on all architectures since 424. What came later may do anything, as setxattrat did,
// which a libseccomp of before does not know by name: to what is judged it is not there, as on an older kernel.
constexpr unsigned kNewestCall = 462;
// The same of modes and times. Compilers and copies set them of what they have made and would fail over a refusal: for
// Python classes these calls succeed and do nothing, and what is made has the mode that it was made with.
constexpr const char* kModesAndTimes[] = {"chmod", "fchmod", "fchmodat",  "fchmodat2",
                                          "utime", "utimes", "futimesat", "utimensat"};
// Whoever is named by the first argument; 0 is the caller.
constexpr const char* kOnlyOneself[] = {"prlimit64", "sched_setscheduler", "sched_setparam", "sched_setattr",
                                        "sched_setaffinity"};
// Of a file that is open to be read: to lock it, by which its owner's writers wait.
constexpr int kLocks[] = {F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW};
// Which signal a parent gets at the end of a child: with SIGCONT one that ends late would wake a stopped parent up.
constexpr unsigned kSignalOfItsEnd = 0xff, kMostSignals = 64;
// Calls that fill memory go on while a stopped process's other side is measured, for a second for each few gigabytes.
// CUDA's driver and NCCL of one rank work without them (tools/long/gpu_walls.py); NCCL of several ranks and
// compute-sanitizer have not been tried.
constexpr unsigned kFilling[] = {MAP_POPULATE, MAP_LOCKED};
// MADV_POPULATE_READ, …_WRITE and MADV_COLLAPSE (which fills a huge page where one of its pages is there): older
// headers do not have them.
constexpr unsigned kFillingAdvice[] = {22, 23, 25};
constexpr const char* kFillingCalls[] = {"mlock", "mlock2", "mlockall"};
// Of a terminal, whatever does more than ask is denied: to type into it, for the shell behind it to carry out, to stop
// it, and its settings, which last. Landlock keeps them since its version 5. These ask, or are of any descriptor.
constexpr unsigned kTerminals = 0x5400, kAllOfTerminals = 0x100;
constexpr unsigned kAskTerminals[] = {TCGETS,       TCGETA,   TIOCGPGRP, TIOCOUTQ, TIOCGWINSZ, TIOCMGET,
                                      TIOCGSOFTCAR, FIONREAD, FIONBIO,   TIOCGETD, TIOCGSID,   0x542a /* TCGETS2 */,
                                      FIONCLEX,     FIOCLEX,  FIOASYNC};
// Of a file that is open to be read: to choose the signal that tells of it (as timer_create does), to make everybody
// else wait who opens it, and to say for how long what is written will live, which the kernel keeps with the file for
// all to read.
constexpr unsigned kOfDescriptors[] = {F_SETSIG, F_SETLEASE, F_SET_RW_HINT};
// Of a file system, by the letter of its family: they change attributes of a file that is open to be read, seal it for
// ever, or make a copy of a folder beside it. Whoever wanted to clone a file (FICLONE) copies it.
constexpr unsigned kFileSystems[] = {'f', 'r', 'v', 'X', 0x94};

// All requests from `first` on, `count` of them (a power of two), but for those that ask: in as few rules as there are
// blocks without one.
void deny_terminals(const FilterContext& filter, unsigned first, unsigned count) {
  constexpr unsigned kRequest = 0xffff;  // the rest of it is the size of its argument
  const auto asks = [&](unsigned request) { return request >= first && request < first + count; };
  if (std::ranges::none_of(kAskTerminals, asks)) {
    deny(filter, "ioctl", EPERM, SCMP_A1(SCMP_CMP_MASKED_EQ, kRequest & ~(count - 1), first));
  } else if (count > 1) {
    deny_terminals(filter, first, count / 2);
    deny_terminals(filter, first + count / 2, count / 2);
  }
}

// A limit of one byte keeps an image of memory from the system's service, too, and zero does not.
void deny_cores(const FilterContext& filter, bool python) {
  const int error = python ? 0 : EPERM;
  deny(filter, "setrlimit", error, SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffU, RLIMIT_CORE));
  deny(filter, "prlimit64", error, SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU, RLIMIT_CORE),
       SCMP_A2(SCMP_CMP_NE, 0));
}

// Neither to read nor to write, which Landlock lets pass: it opens any device, and what is hidden, to be controlled.
void deny_opening_for_control(const FilterContext& filter) {
  deny(filter, "open", EACCES, SCMP_A1(SCMP_CMP_MASKED_EQ, O_ACCMODE, O_ACCMODE));
  deny(filter, "openat", EACCES, SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE, O_ACCMODE));
  deny(filter, "openat2", ENOSYS);  // its flags are behind a pointer; callers fall back on openat
}

// Not even those of this machine: a service behind a socket would do outside what is denied inside, so ranks have those
// of the internet alone, and what their libraries ask of the machine's own addresses. A pair of connected ones is no
// such thing, but for one of datagrams (the kernel makes them of SOCK_RAW, too), which can be sent elsewhere. CUDA's
// driver gives up where it cannot make a socket of sequenced packets and listen on it; it asks another for the server
// of MPS, which to it is not there. NCCL's ranks make one of datagrams.
void deny_sockets(const FilterContext& filter, bool network, bool gpu, bool listens) {
  constexpr unsigned kTypes = 0xf;      // the rest of a socket's type are flags
  constexpr unsigned kFamilies = 0x40;  // more than there are
  for (unsigned type = 0; type <= kTypes; ++type) {
    if (type == SOCK_STREAM || type == SOCK_SEQPACKET) continue;
    deny(filter, "socketpair", EACCES, SCMP_A1(SCMP_CMP_MASKED_EQ, kTypes, type));
  }
  if (!network && !gpu && !listens) return deny(filter, "socket", EACCES);
  for (unsigned family = 0; family < kFamilies; ++family) {
    if (network && (family == AF_INET || family == AF_INET6 || family == AF_NETLINK)) continue;
    if ((gpu || listens) && family == AF_UNIX) continue;
    deny(filter, "socket", EACCES, SCMP_A0(SCMP_CMP_EQ, family));
  }
  deny(filter, "socket", EACCES, SCMP_A0(SCMP_CMP_GE, kFamilies));
  deny(filter, "socket", EACCES, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, NETLINK_ROUTE));
  if (!gpu && !listens) return;
  for (unsigned type = 0; type <= kTypes && !listens; ++type) {
    if (type == SOCK_SEQPACKET || (network && type == SOCK_DGRAM)) continue;
    deny(filter, "socket", EACCES, SCMP_A0(SCMP_CMP_EQ, AF_UNIX), SCMP_A1(SCMP_CMP_MASKED_EQ, kTypes, type));
  }
  if (!network) deny(filter, "connect", ENOENT);
}

// What would wake a stopped process up, or keep it at work: the side that is not measured is to stand still. The runner
// sees what comes through (runner/standstill.hpp).
void deny_waking(const FilterContext& filter, const WallsOptions& options) {
  // Whether CUDA's driver makes such timers has not been tried.
  if (!options.gpu) deny(filter, "timer_create", EPERM);
  for (unsigned number = 1; number <= kMostSignals; ++number) {
    if (number == SIGCHLD) continue;
    deny(filter, "clone", EPERM, SCMP_A0(SCMP_CMP_MASKED_EQ, kSignalOfItsEnd, number));
  }
  // torch's processes ask for it and would fail over a refusal; whoever ends their group ends them.
  deny(filter, "prctl", 0, SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffU, PR_SET_PDEATHSIG));
  if (options.listens || (options.gpu && options.network)) return;
  for (const unsigned flag : kFilling) deny(filter, "mmap", EPERM, SCMP_A3(SCMP_CMP_MASKED_EQ, flag, flag));
  for (const unsigned advice : kFillingAdvice) {  // as a kernel that does not know it
    deny(filter, "madvise", EINVAL, SCMP_A2(SCMP_CMP_MASKED_EQ, 0xffffffffU, advice));
  }
  // libgcrypt, which torch loads, prints a warning over a refusal: for Python classes these calls succeed and lock
  // nothing.
  const bool python = options.profile == Profile::python;
  for (const char* name : kFillingCalls) deny(filter, name, python ? 0 : EPERM);
}

// A process that makes its own is, for a moment, a copy of this one that others may read: Landlock keeps them from it.
bool may_own_shared_memory() { return landlock_version() > 0 && offers_own_shared_memory(); }
bool may_own_loopback() { return landlock_version() > 0 && offers_own_loopback(); }

}  // namespace

struct Walls::Filter {
  std::vector<sock_filter> instructions;
  sock_fprog program{};
};

Walls::Walls(const WallsOptions& options) : options_(options), filter_(std::make_unique<Filter>()) {
  const bool python = options.profile == Profile::python;
  confinement_.own_shared_memory = python && may_own_shared_memory();
  confinement_.shared_memory_bytes = options.memory_limit_bytes;
  // Ranks that one process has started, or that stand for themselves: nobody they have to meet is outside.
  confinement_.own_loopback = options.network && confinement_.own_shared_memory && may_own_loopback();
  const FilterContext filter = empty_filter();
  for (const char* name : kDenied) deny(filter, name, EPERM);
  for (const char* name : kOnlyOneself) deny(filter, name, EPERM, SCMP_A0(SCMP_CMP_NE, 0));
  // Not of a group or a user either, who are whoever 0 says.
  deny(filter, "setpriority", EPERM, SCMP_A0(SCMP_CMP_NE, PRIO_PROCESS));
  deny(filter, "setpriority", EPERM, SCMP_A0(SCMP_CMP_EQ, PRIO_PROCESS), SCMP_A1(SCMP_CMP_NE, 0));
  deny_terminals(filter, kTerminals, kAllOfTerminals);
  deny_cores(filter, python);
  deny_opening_for_control(filter);
  deny_waking(filter, options);
  for (const unsigned command : kOfDescriptors) {
    deny(filter, "fcntl", EPERM, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU, command));
  }
  // Compilers and caches of Python classes lock what is their own; no filter sees whose a file is.
  if (!python && !options.gpu) {
    deny(filter, "flock", ENOLCK);
    for (const int command : kLocks) {
      deny(filter, "fcntl", ENOLCK, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU, static_cast<unsigned>(command)));
    }
  }
  for (const unsigned family : kFileSystems) {
    deny(filter, "ioctl", ENOTTY, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xff00U, family << 8));
  }
  for (const char* name : kModesAndTimes) deny(filter, name, python ? 0 : EPERM);
  // unshare() is denied above; a new process gets no namespaces of its own either.
  for (const unsigned flag : kNamespaces) {
    deny(filter, "clone", EPERM, SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
  }
  deny(filter, "clone3", ENOSYS);          // its flags are behind a pointer; the C library then falls back on clone
  deny(filter, "io_uring_setup", ENOSYS);  // it would do what is denied here, socket() for one
  deny_sockets(filter, options.network, options.gpu, options.listens);
  // Whoever ends or stops our group does so with all that it has started, and while another is measured nothing of it
  // runs. Python programs that ask for a session of their own need none, and would fail over a refusal.
  for (const char* name : {"setsid", "setpgid"}) deny(filter, name, python ? 0 : EPERM);
  const FileDescriptor file(::memfd_create("syslab-filter", MFD_CLOEXEC));
  if (!file) throw_errno(ErrorKind::internal, "make a seccomp filter", errno, "memfd_create");
  demand(::seccomp_export_bpf(filter.get(), file.get()), "seccomp_export_bpf");
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) throw_errno(ErrorKind::internal, "read a seccomp filter", errno, "fstat");
  const auto bytes = static_cast<std::size_t>(found.st_size);
  filter_->instructions = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kNewestCall, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)};
  const std::size_t ours = filter_->instructions.size();
  filter_->instructions.resize(ours + bytes / sizeof(sock_filter));
  if (::pread(file.get(), &filter_->instructions[ours], bytes, 0) != static_cast<ssize_t>(bytes)) {
    throw_errno(ErrorKind::internal, "read a seccomp filter", errno, "pread");
  }
  filter_->program = {static_cast<unsigned short>(filter_->instructions.size()), filter_->instructions.data()};
  if (::prctl(PR_GET_SECCOMP) >= 0) confinement_.filter = &filter_->program;
}

Walls::~Walls() = default;

const Confinement* Walls::confinement() {
  if (landlock_version() > 0) {
    const bool shares_memory = options_.profile == Profile::python && !confinement_.own_shared_memory;
    std::vector<std::string> hidden = paths_in(environment_variable("SYSLAB_WALLS_HIDE")), unlisted;
    // The names in a folder tell who has handed something in. So do those of zips, in the folder that they lie in.
    std::ranges::copy_if(hidden, std::back_inserter(unlisted), [](const std::string& one) {
      std::error_code none;
      const std::filesystem::path path(one);
      return std::filesystem::is_directory(path, none) || ::strcasecmp(path.extension().c_str(), ".zip") == 0;
    });
    refuse_hard_links(hidden, options_.hidden);
    std::ranges::copy(options_.hidden, std::back_inserter(hidden));
    ruleset_ = make_ruleset(options_.writable, hidden, shares_memory, options_.network,
                            environment_variable("SYSLAB_WALLS_SHOW"), unlisted);
    confinement_.landlock_ruleset = ruleset_.get();
  }
  return &confinement_;
}

std::vector<std::string> keys_folders() {
  std::vector<std::string> all;
  for (const std::filesystem::path& folder : state_folder_paths()) all.push_back(folder.string());
  return all;
}

const std::map<std::string, std::string>& withheld_variables() {
  static const std::map<std::string, std::string> all{
      {"SYSLAB_LAUNCH_SECRET", ""}, {"SYSLAB_WALLS_HIDE", ""}, {"SYSLAB_WALLS_SHOW", ""}};
  return all;
}

void deny_processes() {
  const FilterContext filter = empty_filter();
  for (const char* name : {"fork", "vfork", "execve", "execveat"}) deny(filter, name, EPERM);
  deny(filter, "clone3", ENOSYS);  // its flags are behind a pointer; the C library then falls back on clone
  deny(filter, "clone", EPERM, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  demand(::seccomp_load(filter.get()), "seccomp_load");
}

std::vector<std::string> missing_walls(bool shared_memory, bool loopback) {
  std::vector<std::string> missing;
  const int version = landlock_version();
  if (version == 0) {
    missing.emplace_back("files and other processes' memory (Landlock)");
  } else if (version < 3) {
    missing.emplace_back("truncation of files (Landlock 3)");
  }
  if (version < 6) missing.emplace_back("signals (Landlock 6)");
  if (::prctl(PR_GET_SECCOMP) < 0) missing.emplace_back("system calls (seccomp)");
  if (shared_memory && !may_own_shared_memory()) {
    missing.emplace_back("for classes a /dev/shm of their own (user namespaces, Landlock)");
  }
  if (loopback && !may_own_loopback()) {
    missing.emplace_back("for classes of ranks a network of their own (user and network namespaces, Landlock)");
  }
  return missing;
}

bool under_compute_sanitizer() { return !environment_variable("NV_SANITIZER_INJECTION_TRANSPORT_TYPE").empty(); }

bool walls_wanted() { return environment_variable("SYSLAB_WALLS") != "none"; }

void hide_this_process() { ::prctl(PR_SET_DUMPABLE, 0); }

}  // namespace syslab::judge
