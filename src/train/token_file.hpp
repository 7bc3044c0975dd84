// A file of tokens, mapped into memory: as large as it likes, read where a batch looks.
//
//   const TokenFile tokens("train.bin");          // or a .npy, or any text
//   tokens.check(config.vocab);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace syslab::train {

// The format of a token in the file; little-endian. `bytes` is text: a byte is a token, in any language, and ids are
// below 256.
enum class TokenFormat { bytes, uint16, int32, int64 };
std::string_view to_string(TokenFormat format);

class TokenFile {
 public:
  // A .npy file (known by its first bytes) says itself what it holds: one dimension of uint8, uint16, int32 or int64.
  // Without `format`, ".bin" and ".u16" are uint16, ".i32" is int32, and everything else is text unless a zero byte
  // near its beginning says otherwise. Error(usage) for a file that cannot be read, is empty, is cut off inside a
  // token, or that is no such .npy.
  explicit TokenFile(std::filesystem::path path, std::optional<TokenFormat> format = std::nullopt);
  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&&) = delete;
  ~TokenFile();

  const std::filesystem::path& path() const { return path_; }
  // What messages call it from now on, where the user knows it by another name.
  void call_it(std::string_view name) { path_ = name; }
  TokenFormat format() const { return format_; }
  std::int64_t size() const { return size_; }  // tokens
  std::int64_t operator[](std::int64_t position) const;

  // Tokens [first, first + out.size()). Error(usage) naming position and id of one outside [0, vocab).
  void read(std::int64_t first, std::span<std::int64_t> out, std::int64_t vocab) const;
  // All of them: reads the whole file once.
  void check(std::int64_t vocab) const;

  // Digest of the size and of pieces all over the file: whether a run is resumed on the data that it began with.
  std::string fingerprint() const;

 private:
  void map();
  void choose_format(std::optional<TokenFormat> wanted);
  void read_npy_header();
  void load(std::int64_t first, std::span<std::int64_t> out) const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::filesystem::path path_;
  TokenFormat format_ = TokenFormat::bytes;
  const std::byte* mapped_ = nullptr;
  std::size_t file_bytes_ = 0, data_begin_ = 0;
  std::int64_t size_ = 0;
};

}  // namespace syslab::train
