// What keeps a stopped process from working, its memory within its limit, and the other names of what is hidden shut.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.hpp"
#include "core/process/own_namespaces.hpp"
#include "judge/walls.hpp"
#include "tests/judge/behind.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::judge {
namespace {

class Standing : public testing::TestWithParam<Profile> {
 protected:
  void SetUp() override {
    if (::prctl(PR_GET_SECCOMP) < 0) GTEST_SKIP() << "this kernel has no seccomp";
  }

  template <typename Body>
  int inside(const Body& body, bool gpu = false) {
    Walls walls({.profile = GetParam(), .gpu = gpu, .writable = (folder_ / ".").string()});
    return behind(*walls.confinement(), body);
  }

  test::TemporaryFolder folder_;
};

TEST_P(Standing, NothingWakesAStoppedProcess) {
  const auto clone_with = [](std::uint64_t flags) {
    return [flags] {
      const long made = ::syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr);
      if (made == 0) ::_exit(0);
      return error_of(made);
    };
  };
  for (const int number : {SIGCONT, SIGUSR1, SIGRTMAX}) {
    EXPECT_EQ(inside(clone_with(static_cast<std::uint64_t>(number))), EPERM) << number;
    EXPECT_EQ(inside(clone_with(static_cast<std::uint64_t>(number)), /*gpu=*/true), EPERM) << number;
  }
  EXPECT_EQ(inside(clone_with((std::uint64_t{1} << 32) | SIGCONT)), EPERM);  // the kernel looks at the lower half
  EXPECT_EQ(inside(clone_with(SIGCHLD)), 0);
  std::array<std::uint64_t, 8> asked{0, 0, 0, 0, SIGCONT};
  EXPECT_EQ(inside([&] { return error_of(::syscall(SYS_clone3, asked.data(), sizeof asked)); }), ENOSYS);
  for (const std::uint64_t option : {std::uint64_t{PR_SET_PDEATHSIG}, (std::uint64_t{1} << 32) | PR_SET_PDEATHSIG}) {
    EXPECT_EQ(inside([&] {
                int before = 0, after = 0;
                ::prctl(PR_GET_PDEATHSIG, &before);
                if (::syscall(SYS_prctl, option, SIGCONT, 0, 0, 0) != 0) return 1;
                ::prctl(PR_GET_PDEATHSIG, &after);
                return before == after && after != SIGCONT ? 0 : 2;
              }),
              0);
  }
}

// Nobody has tried yet what NCCL of several ranks and compute-sanitizer need of it.
TEST_P(Standing, NoMemoryIsFilledInACallThatNoSignalEnds) {
  const auto maps = [](int flags) {
    return [flags] {
      void* const at = ::mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
      return error_of(at == MAP_FAILED ? -1 : 0);
    };
  };
  constexpr int kPopulateWrite = 23, kCollapse = 25;
  const auto advises = [] {
    void* const at = ::mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return error_of(::madvise(at, 1 << 16, kPopulateWrite));
  };
  // Of no page at all: a kernel that knows the advice takes it.
  const auto collapses = [] {
    void* const at = ::mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return error_of(::madvise(at, 0, kCollapse));
  };
  // Whether the call fails; if it does not, whether it fills the page.
  constexpr int kFilled = 150;  // above every error
  const auto locks_by = [](const auto& call) {
    return [call] {
      constexpr std::size_t kSize = 1 << 12;
      void* const at = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (const int error = error_of(call(at, kSize)); error != 0) return error;
      unsigned char resident = 0;
      if (::mincore(at, kSize, &resident) != 0) return errno;
      return (resident & 1) != 0 ? kFilled : 0;
    };
  };
  const auto one = [](void* at, std::size_t size) { return ::mlock(at, size); };
  const auto on_fault = [](void* at, std::size_t size) { return ::syscall(SYS_mlock2, at, size, 0); };
  const auto all = [](void*, std::size_t) { return ::mlockall(MCL_CURRENT); };
  EXPECT_EQ(inside([] { return error_of(::syscall(SYS_remap_file_pages, nullptr, 0, 0, 0, 0)); }), EPERM);
  EXPECT_EQ(inside(maps(0)), 0);
  for (const int flag : {MAP_POPULATE, MAP_LOCKED}) EXPECT_EQ(inside(maps(flag)), EPERM) << flag;
  EXPECT_EQ(inside(advises), EINVAL);
  EXPECT_EQ(inside(collapses), EINVAL);
  const int refused = GetParam() == Profile::native ? EPERM : 0;  // and 0 locks nothing
  EXPECT_EQ(inside(locks_by(one)), refused);
  EXPECT_EQ(inside(locks_by(on_fault)), refused);
  EXPECT_EQ(inside(locks_by(all)), refused);
  EXPECT_EQ(inside(maps(MAP_POPULATE), /*gpu=*/true), EPERM);
  EXPECT_EQ(inside(advises, /*gpu=*/true), EINVAL);
  for (const bool ranks : {false, true}) {
    Walls walls({.profile = GetParam(),
                 .network = ranks,
                 .gpu = true,
                 .listens = !ranks,
                 .writable = (folder_ / ".").string()});
    EXPECT_EQ(behind(*walls.confinement(), maps(MAP_POPULATE)), 0) << (ranks ? "ranks" : "compute-sanitizer");
    // Or the limit of locked memory keeps it from that, which is no wall.
    EXPECT_NE(behind(*walls.confinement(), locks_by(one)), 0) << "it locks nothing";
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Standing, testing::Values(Profile::native, Profile::python),
                         [](const auto& info) { return info.param == Profile::native ? "native" : "python"; });

// What a shell prints behind them.
std::string said_behind(Walls& walls, const std::string& script) {
  SpawnOptions options;
  options.argv = {"/bin/bash", "-c", script};
  options.confinement = walls.confinement();
  Process child = Process::spawn(options);
  child.close_input();
  std::array<char, 256> said{};
  std::string all;
  for (ssize_t got = 0; (got = ::read(child.from_child(), said.data(), said.size())) > 0;) {
    all.append(said.data(), static_cast<std::size_t>(got));
  }
  child.wait();
  return all;
}

TEST(WallsAround, TheSharedMemoryOfAClassHoldsNoMoreThanItsLimit) {
  if (!offers_own_shared_memory()) GTEST_SKIP() << "no user namespaces here";
  const test::TemporaryFolder folder;
  Walls walls({.profile = Profile::python, .memory_limit_bytes = 8U << 20, .writable = (folder / ".").string()});
  EXPECT_EQ(said_behind(walls,
                        "head -c 7M /dev/zero > /dev/shm/a && echo fits; "
                        "head -c 2M /dev/zero 2>&- >> /dev/shm/a || echo full; stat -c %s /dev/shm/a; "
                        "for i in $(seq 3000); do : > /dev/shm/$i || break; done 2>&-; ls /dev/shm | wc -l"),
            "fits\nfull\n8388608\n2047\n");
}

TEST(WallsAround, WhatIsHiddenHasNoSecondName) {
  const test::TemporaryFolder folder;
  const std::string database = (folder / "lab.db").string(), other = (folder / "copy").string();
  std::ofstream(database) << "kept";
  ::setenv("SYSLAB_WALLS_HIDE", (database + ":" + database + "-wal").c_str(), 1);
  std::filesystem::create_directory(folder / "keys");
  Walls walls(
      {.writable = (folder / ".").string(), .hidden = {(folder / "none").string(), (folder / "keys").string()}});
  EXPECT_NO_THROW(walls.confinement());
  std::filesystem::create_hard_link(database, other);
  const auto kind = [&] {
    try {
      walls.confinement();
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::internal;
  };
  EXPECT_EQ(kind(), ErrorKind::usage);
  std::filesystem::remove(other);
  std::ofstream(folder / "keys/runs.key") << "kept";
  EXPECT_NO_THROW(walls.confinement());
  std::filesystem::create_hard_link(folder / "keys/runs.key", other);
  EXPECT_EQ(kind(), ErrorKind::usage);
  ::unsetenv("SYSLAB_WALLS_HIDE");
}

}  // namespace
}  // namespace syslab::judge
