#include "store/file_system.hpp"

#include <sys/vfs.h>

#include <array>
#include <cstdint>
#include <system_error>

namespace syslab::store {
namespace {

struct KnownType {
  std::uint32_t magic;
  const char* name;
};

// Magic numbers: statfs(2), linux/magic.h, and the file systems' own sources where the kernel does not carry them.
constexpr std::array kNetworkTypes{
    KnownType{0x6969, "NFS"},        KnownType{0x517B, "SMB"},        KnownType{0xFF534D42, "CIFS"},
    KnownType{0xFE534D42, "SMB2"},   KnownType{0x0BD00BD0, "Lustre"}, KnownType{0x47504653, "GPFS"},
    KnownType{0x19830326, "BeeGFS"}, KnownType{0x00C36400, "Ceph"},   KnownType{0x5346414F, "AFS"},
    KnownType{0x6B414653, "kAFS"},   KnownType{0x01021997, "9p"},     KnownType{0x01161970, "GFS2"},
    KnownType{0x7461636F, "OCFS2"},  KnownType{0x20030528, "PVFS2"},  KnownType{0xAAD7AAEA, "PanFS"},
    KnownType{0x013111A8, "IBRIX"},  KnownType{0xBACBACBC, "vmhgfs"}, KnownType{0x786F4256, "vboxsf"},
    KnownType{0x65735546, "FUSE"},  // sshfs, s3fs, … : rarely coherent, and the rollback journal is only slower
};

}  // namespace

std::optional<std::string> network_file_system_name(long statfs_type) {
  for (const KnownType& known : kNetworkTypes) {
    if (known.magic == static_cast<std::uint32_t>(statfs_type)) return known.name;
  }
  return std::nullopt;
}

std::optional<std::string> network_file_system(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path asked = std::filesystem::absolute(path, ignored);
  if (!std::filesystem::exists(asked, ignored)) asked = asked.parent_path();
  struct statfs found {};
  if (::statfs(asked.c_str(), &found) != 0) return std::nullopt;  // opening the file will report the error
  return network_file_system_name(static_cast<long>(found.f_type));
}

}  // namespace syslab::store
