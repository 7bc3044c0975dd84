// A rollback journal as a writer leaves it that died in a transaction: SQLite plays it back when the file is read next.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/store/fixture.hpp"

namespace syslab::store::test {

inline std::string big_endian(std::uint64_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// Turns WAL mode off, because only then SQLite looks for a journal. No connection may have the file open.
inline void leave_wal_mode(const fs::path& database) {
  std::string bytes = bytes_of(database);
  bytes[18] = bytes[19] = 1;
  write_bytes(database, bytes);
}

// Of a transaction that changed the last page of `database`, with the page as it is now to be put back. Named
// `super_journal` unless that is empty. Layout: sqlite.org/fileformat2.html, 3.
inline std::string hot_journal(const fs::path& database, const std::string& super_journal = {}) {
  static constexpr std::string_view kMagic{"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8};
  constexpr std::uint32_t kNonce = 0x12345678, kSector = 512;
  const std::string bytes = bytes_of(database);
  const auto byte = [](const std::string& text, std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const std::size_t stored = byte(bytes, 16) * 256U + byte(bytes, 17), size = stored == 1 ? 65536 : stored;
  const std::size_t pages = bytes.size() / size;
  const std::string page = bytes.substr((pages - 1) * size, size);
  std::uint32_t sum = kNonce;
  for (std::size_t at = size - 200; at > 0 && at < size; at -= 200) sum += byte(page, at);

  std::string journal(kMagic);
  for (const std::uint64_t value :
       {std::uint64_t{1}, std::uint64_t{kNonce}, std::uint64_t{pages}, std::uint64_t{kSector}, std::uint64_t{size}}) {
    journal += big_endian(value);
  }
  journal.resize(kSector, '\0');
  journal += big_endian(pages) + page + big_endian(sum);
  if (super_journal.empty()) return journal;
  std::uint32_t name_sum = 0;
  for (const char c : super_journal) name_sum += static_cast<std::uint32_t>(static_cast<signed char>(c));
  return journal + big_endian(0x40000000 / size + 1) + super_journal + big_endian(super_journal.size()) +
         big_endian(name_sum) + std::string(kMagic);
}

}  // namespace syslab::store::test
