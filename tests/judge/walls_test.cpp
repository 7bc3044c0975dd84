#include "judge/walls.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <termios.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "core/process/own_namespaces.hpp"
#include "judge/landlock.hpp"
#include "tests/judge/walls_of.hpp"

namespace syslab::judge {
namespace {

TEST_P(WallsOf, NobodyIsTracedOrRead) {
  EXPECT_EQ(inside([] { return error_of(::ptrace(PTRACE_ATTACH, ::getppid(), nullptr, nullptr)); }), EPERM);
  char word[8];
  iovec here{word, sizeof word}, there{word, sizeof word};
  EXPECT_EQ(inside([&] { return error_of(::process_vm_readv(::getppid(), &here, 1, &there, 1, 0)); }), EPERM);
  EXPECT_EQ(inside([&] { return error_of(::process_vm_writev(::getppid(), &here, 1, &there, 1, 0)); }), EPERM);
  EXPECT_EQ(inside([] { return error_of(::syscall(SYS_pidfd_getfd, 0, 1, 0)); }), EPERM);
}

#ifdef __x86_64__
// Whose thread alone ended would leave its process behind, which then hangs.
TEST_P(WallsOf, ACallOfAnotherArchitectureEndsTheProcess) {
  EXPECT_EQ(inside([] {
              std::thread([] {
                long number = 20;  // getpid of 32 bits
                asm volatile("int $0x80" : "+a"(number) : : "memory");
              }).join();
              return 7;
            }),
            kEndedBySignal);
}
#endif

TEST_P(WallsOf, OnesOwnLimitsMayBeReadAndNobodyElses) {
  struct rlimit limit {};
  EXPECT_EQ(inside([&] { return error_of(::prlimit(0, RLIMIT_NOFILE, nullptr, &limit)); }), 0);
  EXPECT_EQ(inside([&] { return error_of(::prlimit(::getppid(), RLIMIT_NOFILE, nullptr, &limit)); }), EPERM);
}

TEST_P(WallsOf, NoNamespaceAndNoRingLeadsAround) {
  EXPECT_EQ(inside([] { return error_of(::unshare(CLONE_NEWUSER)); }), EPERM);
  for (const int flag : {CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWPID}) {
    EXPECT_EQ(inside([&] {
                const long made = ::syscall(SYS_clone, flag | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
                if (made == 0) ::_exit(0);
                return error_of(made);
              }),
              EPERM);
  }
  EXPECT_EQ(inside([] { return error_of(::syscall(SYS_io_uring_setup, 4, nullptr)); }), ENOSYS);
}

TEST_P(WallsOf, ThereAreSocketsOnlyWhereAskedFor) {
  const auto socket = [] { return error_of(::socket(AF_INET, SOCK_STREAM, 0)); };
  EXPECT_EQ(inside(socket), EACCES);
  EXPECT_EQ(inside(socket, true), 0);
  EXPECT_EQ(inside([] {
              int pair[2];
              return error_of(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
            }),
            0);
}

TEST_P(WallsOf, APairOfDatagramSocketsWouldLeadElsewhere) {
  const auto pair_of = [](int type) {
    return [type] {
      int pair[2];
      return error_of(::socketpair(AF_UNIX, type, 0, pair));
    };
  };
  EXPECT_EQ(inside(pair_of(SOCK_DGRAM | SOCK_CLOEXEC)), EACCES);
  EXPECT_EQ(inside(pair_of(SOCK_DGRAM), true), EACCES);
  EXPECT_EQ(inside(pair_of(SOCK_RAW)), EACCES) << "the kernel makes a socket of datagrams of it";
  EXPECT_EQ(inside(pair_of(SOCK_RAW | SOCK_CLOEXEC), true, true), EACCES);
  EXPECT_EQ(inside(pair_of(SOCK_SEQPACKET)), 0);
}

TEST_P(WallsOf, RanksHaveNoSocketsToServicesOfThisMachine) {
  const auto made = [&](std::uint64_t family, int type, int protocol = 0, bool gpu = false) {
    return inside([=] { return error_of(::syscall(SYS_socket, family, type, protocol)); }, true, gpu);
  };
  EXPECT_EQ(made(AF_UNIX, SOCK_STREAM), EACCES);
  EXPECT_EQ(made((std::uint64_t{1} << 32) | AF_UNIX, SOCK_STREAM), EACCES);  // the kernel looks at the lower half
  EXPECT_EQ(made(AF_UNIX, SOCK_DGRAM), EACCES);
  EXPECT_EQ(made(AF_VSOCK, SOCK_STREAM), EACCES);
  EXPECT_EQ(made(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), 0);  // which addresses this machine has
  EXPECT_EQ(made(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT), EACCES);
  EXPECT_EQ(made(AF_INET, SOCK_DGRAM), 0);
  EXPECT_EQ(made(AF_UNIX, SOCK_STREAM, 0, true), EACCES);
  EXPECT_EQ(made(AF_UNIX, SOCK_SEQPACKET, 0, true), 0);
  EXPECT_EQ(made(AF_UNIX, SOCK_DGRAM, 0, true), 0);
}

TEST_P(WallsOf, OnAGpuThereIsTheDriversSocketAndNoneThatLeadsAnywhere) {
  const auto socket = [](int family, int type) { return [=] { return error_of(::socket(family, type, 0)); }; };
  EXPECT_EQ(inside(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC), false, true), 0);
  EXPECT_EQ(inside(socket(AF_UNIX, SOCK_SEQPACKET)), EACCES);
  EXPECT_EQ(inside(socket(AF_UNIX, SOCK_STREAM), false, true), EACCES);
  EXPECT_EQ(inside(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK), false, true), EACCES);
  EXPECT_EQ(inside(socket(AF_INET, SOCK_SEQPACKET), false, true), EACCES);
  EXPECT_EQ(inside(socket(AF_NETLINK, SOCK_RAW), false, true), EACCES);
  const auto listens_and_connects = [] {
    sockaddr_un name{AF_UNIX, {}};
    std::strcpy(name.sun_path + 1, "syslab-walls-test");  // an abstract name, as the driver's
    const int listening = ::socket(AF_UNIX, SOCK_SEQPACKET, 0), other = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (::bind(listening, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 || ::listen(listening, 1) != 0)
      return 1;
    return error_of(::connect(other, reinterpret_cast<sockaddr*>(&name), sizeof name));
  };
  EXPECT_EQ(inside(listens_and_connects, false, true), ENOENT);
  EXPECT_EQ(inside(listens_and_connects, true, true), 0);
}

// As compute-sanitizer needs it: of this machine, of any type, and nothing is reached by them.
TEST_P(WallsOf, UnderComputeSanitizerSocketsOfThisMachineAreListenedOnAndConnectToNothing) {
  const auto socket = [](int family, int type) { return [=] { return error_of(::socket(family, type, 0)); }; };
  for (const bool gpu : {false, true}) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
      EXPECT_EQ(inside(socket(AF_UNIX, type | SOCK_CLOEXEC), false, gpu, true), 0) << type;
    }
    EXPECT_EQ(inside(socket(AF_INET, SOCK_STREAM), false, gpu, true), EACCES);
    EXPECT_EQ(inside(socket(AF_NETLINK, SOCK_RAW), false, gpu, true), EACCES);
  }
  const auto listens_and_connects = [] {
    sockaddr_un name{AF_UNIX, {}};
    std::strcpy(name.sun_path + 1, "syslab-walls-sanitizer");
    const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0), other = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::bind(listening, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 || ::listen(listening, 1) != 0)
      return 1;
    return error_of(::connect(other, reinterpret_cast<sockaddr*>(&name), sizeof name));
  };
  EXPECT_EQ(inside(listens_and_connects, false, true, true), ENOENT);
  EXPECT_EQ(inside(socket(AF_UNIX, SOCK_STREAM), false, true, false), EACCES);
}

TEST_P(WallsOf, NobodyLeavesItsProcessGroup) {
  // From a child: who leads a group could make no session anyway.
  const auto leaves = [](auto call, auto own) {
    const pid_t before = own();
    const pid_t child = ::fork();
    if (child == 0) ::_exit((call() < 0 ? 1 : 0) + (own() == before ? 0 : 2));
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  const int refused = GetParam() == Profile::native ? 1 : 0;
  EXPECT_EQ(inside([&] { return leaves([] { return ::setsid(); }, [] { return ::getsid(0); }); }), refused);
  EXPECT_EQ(inside([&] { return leaves([] { return ::setpgid(0, 0); }, [] { return ::getpgrp(); }); }), refused);
}

TEST_P(WallsOf, NobodyElseIsMadeSlower) {
  EXPECT_EQ(inside([] { return error_of(::setpriority(PRIO_PROCESS, 0, 19)); }), 0);
  EXPECT_EQ(inside([] { return error_of(::setpriority(PRIO_PROCESS, static_cast<id_t>(::getppid()), 19)); }), EPERM);
  EXPECT_EQ(inside([] { return error_of(::setpriority(PRIO_PGRP, 0, 19)); }), EPERM);
  EXPECT_EQ(inside([] { return error_of(::setpriority(PRIO_USER, 0, 19)); }), EPERM);
  EXPECT_EQ(inside([] { return error_of(::syscall(SYS_ioprio_set, 3, 0, 0)); }), EPERM);  // of this user's processes
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  EXPECT_EQ(inside([&] { return error_of(::sched_setaffinity(::getppid(), sizeof one, &one)); }), EPERM);
  EXPECT_EQ(inside([&] { return error_of(::sched_setaffinity(0, sizeof one, &one)); }), 0);
}

TEST_P(WallsOf, ACallThatIsNewerThanTheWallsIsNotThere) {
  const std::string file = (folder_ / "kept").string();
  std::ofstream(file) << "kept";
  constexpr long kSetAttributeAt = 463, kSetFlagsAt = 469, kNextYears = 600;
  struct {
    std::uint64_t value;
    std::uint32_t size, flags;
  } attribute{reinterpret_cast<std::uintptr_t>("b"), 1, 0};
  EXPECT_EQ(inside([&] {
              return error_of(::syscall(kSetAttributeAt, AT_FDCWD, file.c_str(), 0, "user.a", &attribute, 16L));
            }),
            ENOSYS);
  std::array<std::uint64_t, 3> none{};
  EXPECT_EQ(
      inside([&] { return error_of(::syscall(kSetFlagsAt, AT_FDCWD, file.c_str(), none.data(), sizeof none, 0)); }),
      ENOSYS);
  EXPECT_EQ(inside([] { return error_of(::syscall(kNextYears)); }), ENOSYS);
  EXPECT_LT(::getxattr(file.c_str(), "user.a", nullptr, 0), 0);
}

TEST_P(WallsOf, NobodyWakesUpWhileAnotherIsMeasured) {
  EXPECT_EQ(inside([] {
              sigevent wakes{};
              wakes.sigev_notify = SIGEV_SIGNAL;
              wakes.sigev_signo = SIGCONT;
              timer_t timer{};
              return error_of(::timer_create(CLOCK_MONOTONIC, &wakes, &timer));
            }),
            EPERM);
  const std::string file = (folder_ / "kept").string();
  std::ofstream(file) << "kept";
  const auto asks = [&](int command, long what) {
    return inside([&] { return error_of(::fcntl(::open(file.c_str(), O_RDONLY), command, what)); });
  };
  EXPECT_EQ(asks(F_SETSIG, SIGCONT), EPERM);
  EXPECT_EQ(asks(F_SETLEASE, F_RDLCK), EPERM);
  EXPECT_EQ(asks(F_SETFD, FD_CLOEXEC), 0);
}

TEST_P(WallsOf, TheKernelsLogIsNotRead) {
  constexpr int kReadAll = 3;
  std::array<char, 256> text{};
  EXPECT_EQ(inside([&] { return error_of(::klogctl(kReadAll, text.data(), static_cast<int>(text.size()))); }), EPERM);
  if (landlock_version() == 0 || ::access("/dev/kmsg", R_OK) != 0) GTEST_SKIP() << "no log to be read here";
  EXPECT_EQ(inside([] { return error_of(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK)); }), EACCES);
}

TEST_P(WallsOf, NothingIsTypedIntoATerminalAndNoMemoryHasAKey) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << "no terminals here";
  EXPECT_EQ(inside([&] { return error_of(::ioctl(terminal, TIOCSTI, "x")); }), EPERM);
  EXPECT_EQ(inside([&] { return error_of(::ioctl(terminal, TIOCLINUX, "\3")); }), EPERM);
  EXPECT_EQ(inside([&] { return error_of(::ioctl(terminal, TIOCGWINSZ, std::array<char, 64>().data())); }), 0);
  const winsize size{51, 51, 0, 0};
  EXPECT_EQ(inside([&] { return error_of(::ioctl(terminal, TIOCSWINSZ, &size)); }), EPERM);
  termios settings{};
  ASSERT_EQ(::tcgetattr(terminal, &settings), 0);
  int carrier = 1;
  EXPECT_EQ(inside([&] { return error_of(::ioctl(terminal, TIOCSSOFTCAR, &carrier)); }), EPERM);
  EXPECT_EQ(inside([&] { return error_of(::ioctl(terminal, TCXONC, TCOOFF)); }), EPERM);
  EXPECT_EQ(inside([&] { return error_of(::ioctl(terminal, TCFLSH, TCIOFLUSH)); }), EPERM);
  EXPECT_EQ(inside([&] { return error_of(::ioctl(terminal, FIOCLEX)); }), 0);
  EXPECT_EQ(inside([&] { return error_of(::tcsetattr(terminal, TCSANOW, &settings)); }), EPERM);
  EXPECT_EQ(inside([&] { return error_of(::tcgetattr(terminal, &settings)); }), 0);
  ::close(terminal);
  EXPECT_EQ(inside([] { return error_of(::shmget(IPC_PRIVATE, 4096, 0600)); }), EPERM);
  EXPECT_EQ(inside([] { return error_of(::semget(IPC_PRIVATE, 1, 0600)); }), EPERM);
  EXPECT_EQ(inside([] { return error_of(::msgget(IPC_PRIVATE, 0600)); }), EPERM);
}

// A limit of one byte keeps images of memory from services; zero would not.
TEST_P(WallsOf, TheLimitOfCoresStaysAsItIs) {
  const auto lowers = [] {
    rlimit before{}, after{};
    if (::getrlimit(RLIMIT_CORE, &before) != 0) return 1;
    const rlimit none{0, 0};
    const int error = error_of(::setrlimit(RLIMIT_CORE, &none));
    if (::getrlimit(RLIMIT_CORE, &after) != 0 || before.rlim_cur != after.rlim_cur) return 2;
    return error;
  };
  EXPECT_EQ(inside(lowers), GetParam() == Profile::native ? EPERM : 0);
}

TEST_P(WallsOf, SignalsReachNobodyOutside) {
  if (!missing_walls().empty()) GTEST_SKIP() << missing_walls().front();
  EXPECT_EQ(inside([] { return error_of(::kill(::getppid(), 0)); }), EPERM);
}

TEST_P(WallsOf, ThreadsRun) {
  EXPECT_EQ(inside([] {
              int done = 1;
              std::thread([&] { done = 0; }).join();
              return done;
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(Both, WallsOf, testing::Values(Profile::native, Profile::python),
                         [](const auto& info) { return info.param == Profile::native ? "native" : "python"; });

TEST(Walls, AfterDenyingProcessesThereAreThreadsAlone) {
  EXPECT_EQ(behind({},
                   [] {
                     deny_processes();
                     if (::fork() >= 0) return 1;
                     if (errno != EPERM) return 2;
                     char* const argv[] = {nullptr};
                     if (::execve("/bin/true", argv, argv) == 0 || errno != EPERM) return 3;
                     int done = 4;
                     std::thread([&] { done = 0; }).join();
                     return done;
                   }),
            0);
}

TEST(Walls, AClassHasItsOwnSharedMemoryWhichIsGoneWithIt) {
  if (!offers_own_shared_memory()) GTEST_SKIP() << "no user namespaces here";
  const test::TemporaryFolder folder;
  Walls walls({.profile = Profile::python, .writable = (folder / ".").string()});
  const std::string left = "/dev/shm/syslab-walls-test-" + std::to_string(::getpid());
  std::ofstream(left) << "of another";
  SpawnOptions options;
  options.argv = {
      "/bin/sh", "-c",
      "test ! -e \"$0\" && echo mine > \"$0\" && cat \"$0\" && mkdir \"$0.d\" && mv \"$0\" \"$0.d/there\" && "
      "id -u && echo more 2>/dev/null > /dev/syslab-walls-test || echo kept",
      left};
  options.confinement = walls.confinement();
  hide_this_process();  // as workers do
  Process child = Process::spawn(options);
  child.close_input();
  std::array<char, 256> said{};
  std::string all;
  for (ssize_t got = 0; (got = ::read(child.from_child(), said.data(), said.size())) > 0;) {
    all.append(said.data(), static_cast<std::size_t>(got));
  }
  ::prctl(PR_SET_DUMPABLE, 1);
  EXPECT_EQ(child.wait().describe(), "exit code 0");
  EXPECT_EQ(all, "mine\n" + std::to_string(::geteuid()) + "\nkept\n");
  std::string kept;
  std::getline(std::ifstream(left), kept);
  EXPECT_EQ(kept, "of another");
  EXPECT_NE(::access((left + ".d").c_str(), F_OK), 0);
  ::unlink(left.c_str());
}

// Each line of /proc/net/dev behind its head is an interface.
TEST(Walls, RanksHaveALoopbackOfTheirOwnAndNothingElse) {
  if (!offers_own_loopback() || !missing_walls().empty()) GTEST_SKIP() << "not all walls stand here";
  const test::TemporaryFolder folder;
  const auto network_of = [&](bool network, bool gpu) {
    Walls walls({.profile = Profile::python, .network = network, .gpu = gpu, .writable = (folder / ".").string()});
    SpawnOptions options;
    options.argv = {"/bin/sh", "-c", "readlink /proc/self/ns/net; tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"};
    options.confinement = walls.confinement();
    Process child = Process::spawn(options);
    child.close_input();
    std::array<char, 4096> said{};
    std::string all;
    for (ssize_t got = 0; (got = ::read(child.from_child(), said.data(), said.size())) > 0;) {
      all.append(said.data(), static_cast<std::size_t>(got));
    }
    EXPECT_EQ(child.wait().describe(), "exit code 0");
    return all;
  };
  const std::string ours = std::filesystem::read_symlink("/proc/self/ns/net").string() + "\n";
  const std::string theirs = network_of(true, false);
  EXPECT_EQ(theirs.substr(theirs.find('\n')), "\nlo\n");
  EXPECT_FALSE(theirs.starts_with(ours));
  EXPECT_TRUE(network_of(false, false).starts_with(ours)) << "without sockets it adds nothing";
  EXPECT_FALSE(network_of(true, true).starts_with(ours)) << "on a GPU likewise";
  EXPECT_TRUE(network_of(false, true).starts_with(ours));
}

TEST(Walls, AProcessMayNotWriteIntoTheSharedMemoryOfTheOneBefore) {
  if (!offers_own_shared_memory() || !missing_walls().empty()) GTEST_SKIP() << "not all walls stand here";
  const test::TemporaryFolder folder;
  Walls walls({.profile = Profile::python, .writable = (folder / ".").string()});
  SpawnOptions options;
  options.argv = {"/bin/sleep", "60"};
  options.confinement = walls.confinement();
  const Process before = Process::spawn(options);
  const FileDescriptor its_memory(
      ::open(("/proc/" + std::to_string(before.pid()) + "/root/dev/shm").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  ASSERT_GE(its_memory.get(), 0) << std::strerror(errno);
  const auto writes = [&] {
    return error_of(::openat(its_memory.get(), "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  };
  EXPECT_EQ(writes(), 0);  // outside of all walls
  EXPECT_EQ(behind(*walls.confinement(), writes), EACCES) << "the ruleset has the other's rule";
}

TEST(Walls, WithoutLandlockNobodyMakesASharedMemoryOfTheirOwn) {
  if (!offers_own_shared_memory() || ::prctl(PR_GET_SECCOMP) < 0) GTEST_SKIP() << "not all walls stand here";
  constexpr unsigned kCreateRuleset = 444;
  std::array<sock_filter, 4> instructions{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCreateRuleset, 0, 1),
                                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog without{instructions.size(), instructions.data()};
  const test::TemporaryFolder folder;
  EXPECT_EQ(behind({.filter = &without},
                   [&] {
                     Walls walls({.profile = Profile::python, .writable = (folder / ".").string()});
                     const bool said = missing_walls(true).back().find("/dev/shm") != std::string::npos;
                     return walls.confinement()->own_shared_memory || !said ? 1 : 0;
                   }),
            0);
}

TEST(Walls, ManyProcessesLeaveNoDescriptors) {
  const test::TemporaryFolder folder;
  Walls walls({.profile = Profile::python, .writable = (folder / ".").string()});
  const auto open_ones = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  std::ptrdiff_t first = 0;
  for (int start = 0; start < 50; ++start) {
    SpawnOptions options;
    options.argv = {"/bin/true"};
    options.confinement = walls.confinement();
    EXPECT_EQ(Process::spawn(options).wait().describe(), "exit code 0");
    if (start == 0) first = open_ones();
  }
  EXPECT_EQ(open_ones(), first);
}

TEST(Walls, OnlyTheWordNoneLeavesThemOut) {
  ::unsetenv("SYSLAB_WALLS");
  EXPECT_TRUE(walls_wanted());
  ::setenv("SYSLAB_WALLS", "", 1);
  EXPECT_TRUE(walls_wanted());
  ::setenv("SYSLAB_WALLS", "none", 1);
  EXPECT_FALSE(walls_wanted());
  ::unsetenv("SYSLAB_WALLS");
}

TEST(Walls, AHiddenProcessIsNotDumpable) {
  EXPECT_EQ(behind({},
                   [] {
                     hide_this_process();
                     return ::prctl(PR_GET_DUMPABLE);
                   }),
            0);
}

}  // namespace
}  // namespace syslab::judge
