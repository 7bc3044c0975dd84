#include "judge/other_names.hpp"

#include <gtest/gtest.h>

namespace syslab::judge {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kMounts =
    "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "23 22 0:5 / /proc rw - proc proc rw\n"
    "30 22 8:2 / /data rw - ext4 /dev/sdb rw\n"
    "31 22 8:2 /labs/ada /home/ada/lab rw shared:1 - ext4 /dev/sdb rw\n"
    "32 22 8:1 /srv /mnt/with\\040blank rw - ext4 /dev/sda1 rw\n"
    "33 22 8:2 /labs/ada/lab.db /srv/alone.db rw - ext4 /dev/sdb rw\n";

TEST(OtherNames, AFolderThatIsMountedTwiceHasTwo) {
  EXPECT_EQ(other_mounts_of("/data/labs/ada/lab.db", kMounts), (Names{"/home/ada/lab/lab.db", "/srv/alone.db"}));
  EXPECT_EQ(other_mounts_of("/home/ada/lab/lab.db", kMounts), (Names{"/data/labs/ada/lab.db", "/srv/alone.db"}));
  EXPECT_EQ(other_mounts_of("/srv/alone.db", kMounts), (Names{"/data/labs/ada/lab.db", "/home/ada/lab/lab.db"}));
  EXPECT_EQ(other_mounts_of("/srv/x", kMounts), (Names{"/mnt/with blank/x"}));
}

TEST(OtherNames, APartThatIsMountedTwiceIsOne) {
  EXPECT_EQ(other_mounts_of("/data/labs", kMounts), (Names{"/home/ada/lab", "/srv/alone.db"}));
  EXPECT_EQ(other_mounts_of("/data/labs/ada", kMounts), (Names{"/home/ada/lab", "/srv/alone.db"}));
  constexpr const char* kBound =
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "23 22 8:1 /srv/subs/ada /mnt/ada rw - ext4 /dev/sda1 rw\n"
      "24 22 8:1 /srv/subs/bob /srv/subs/ada/b rw - ext4 /dev/sda1 rw\n";
  EXPECT_EQ(other_mounts_of("/srv/subs", kBound), Names{"/mnt/ada"});
  EXPECT_EQ(other_mounts_of("/srv/subs/carl", kBound), Names());
}

TEST(OtherNames, AFileSystemBelowIsHiddenWhereverItIsMounted) {
  constexpr const char* kBelow =
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "23 22 8:2 / /srv/subs/late rw - ext4 /dev/sdb rw\n"
      "24 22 8:2 / /mnt/late rw - ext4 /dev/sdb rw\n"
      "25 22 8:2 /ada /mnt/ada rw - ext4 /dev/sdb rw\n"
      "26 22 8:3 / /srv/subsidies rw - ext4 /dev/sdc rw\n"
      "27 22 8:3 / /mnt/subsidies rw - ext4 /dev/sdc rw\n";
  EXPECT_EQ(other_mounts_of("/srv/subs", kBelow), (Names{"/mnt/late", "/mnt/ada"}));
}

TEST(OtherNames, WhatIsMountedOnceHasNone) {
  EXPECT_EQ(other_mounts_of("/data/labs/bob/lab.db", kMounts), Names());
  EXPECT_EQ(other_mounts_of("/data/labs/ada2/lab.db", kMounts), Names());
  EXPECT_EQ(other_mounts_of("/tmp/lab.db", kMounts), Names());
  EXPECT_EQ(other_mounts_of("/tmp/lab.db", ""), Names());
  EXPECT_EQ(other_mounts_of("/tmp/lab.db", "no line of this kind\n"), Names());
}

}  // namespace
}  // namespace syslab::judge
