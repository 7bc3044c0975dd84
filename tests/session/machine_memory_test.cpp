#include "session/this_machine.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

class ControlGroups : public testing::Test {
 protected:
  ControlGroups() {
    std::string name = (fs::temp_directory_path() / "syslab_groups_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~ControlGroups() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  fs::path root_;
};

TEST_F(ControlGroups, AJobIsBoundByItsOwnLimitAndByThoseAboveIt) {
  write("proc/self/cgroup", "0::/slurm/job_7/step_0");
  write("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max");
  write("sys/fs/cgroup/slurm/job_7/memory.max", "4294967296");
  write("sys/fs/cgroup/slurm/memory.max", "8589934592");
  write("sys/fs/cgroup/other/memory.max", "1");
  EXPECT_EQ(control_group_limit(root_), 4294967296U);
}

TEST_F(ControlGroups, AContainerSeesItsLimitAtTheTop) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/memory.max", "2147483648");
  EXPECT_EQ(control_group_limit(root_), 2147483648U);
}

TEST_F(ControlGroups, VersionOneKeepsMemoryApart) {
  write("proc/self/cgroup", "8:pids:/job\n4:cpu,memory:/job\n0::/");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(control_group_limit(root_), 1073741824U);
}

TEST_F(ControlGroups, WithoutALimitThereIsNone) {
  EXPECT_EQ(control_group_limit(root_), std::nullopt);
  write("proc/self/cgroup", "0::/job\n4:memory:/job");
  write("sys/fs/cgroup/job/memory.max", "max");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(control_group_limit(root_), std::nullopt);
}

}  // namespace
}  // namespace syslab::cli
