// By which other paths a hidden file is reached. Landlock judges a file by the folders that a path leads through, so a
// second name elsewhere opens what the first one hides.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syslab::judge {

// The same place, or a part of it, where its file system or a folder above or below it is mounted a second time (bind
// mounts, an NFS export that is mounted twice); and the same of each file system that is mounted below it. `mounts`:
// /proc/self/mountinfo.
std::vector<std::string> other_mounts_of(const std::string& path, std::string_view mounts);
std::vector<std::string> other_mounts_of(const std::string& path);

// Error(usage) if a database that is to be hidden (one whose "-wal" is hidden, too), or a file that lies directly in a
// folder of keys, has a second name (a hard link): nobody can find out where that is.
void refuse_hard_links(const std::vector<std::string>& hidden, const std::vector<std::string>& keys);

}  // namespace syslab::judge
