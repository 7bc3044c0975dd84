#include "train/token_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/text/units.hpp"

namespace syslab::train {
namespace {

static_assert(std::endian::native == std::endian::little, "tokens are read as they lie in memory");

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 40;
constexpr std::string_view kNpyMagic("\x93NUMPY", 6);

std::size_t bytes_of(TokenFormat format) {
  switch (format) {
    case TokenFormat::bytes:
      return 1;
    case TokenFormat::uint16:
      return 2;
    case TokenFormat::int32:
      return 4;
    case TokenFormat::int64:
      return 8;
  }
  return 1;
}

template <typename T>
std::int64_t loaded(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);  // a .npy may leave data at any address
  return static_cast<std::int64_t>(value);
}

template <typename T>
void load_all(const std::byte* from, std::span<std::int64_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = loaded<T>(from + i * sizeof(T));
}

// The text after `'key':` in a Python dictionary, without leading spaces; empty if the key is not there.
std::string_view value_of(std::string_view dictionary, std::string_view key) {
  const std::size_t at = dictionary.find(fmt::format("'{}'", key));
  if (at == std::string_view::npos) return {};
  std::string_view rest = dictionary.substr(at + key.size() + 2);
  rest.remove_prefix(std::min(rest.find_first_not_of(" :"), rest.size()));
  return rest;
}

}  // namespace

std::string_view to_string(TokenFormat format) {
  switch (format) {
    case TokenFormat::bytes:
      return "bytes";
    case TokenFormat::uint16:
      return "uint16";
    case TokenFormat::int32:
      return "int32";
    case TokenFormat::int64:
      return "int64";
  }
  return "?";
}

TokenFile::TokenFile(std::filesystem::path path, std::optional<TokenFormat> format) : path_(std::move(path)) {
  map();
  try {
    choose_format(format);
  } catch (...) {
    ::munmap(const_cast<std::byte*>(mapped_), file_bytes_);
    throw;
  }
}

TokenFile::TokenFile(TokenFile&& other) noexcept
    : path_(std::move(other.path_)),
      format_(other.format_),
      mapped_(std::exchange(other.mapped_, nullptr)),
      file_bytes_(other.file_bytes_),
      data_begin_(other.data_begin_),
      size_(std::exchange(other.size_, 0)) {}

TokenFile::~TokenFile() {
  if (mapped_ != nullptr) ::munmap(const_cast<std::byte*>(mapped_), file_bytes_);
}

void TokenFile::refuse(const std::string& why) const {
  throw Error(ErrorKind::usage, fmt::format("cannot read tokens from '{}': {}", path_.string(), why));
}

void TokenFile::map() {
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // opening a FIFO must not block
  if (descriptor < 0) throw_errno(ErrorKind::usage, fmt::format("open '{}'", path_.string()), errno, "open");
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  void* mapped = MAP_FAILED;
  const bool too_large = known && static_cast<std::uint64_t>(status.st_size) > kLargestFile;
  if (known && S_ISREG(status.st_mode) && status.st_size > 0 && !too_large) {
    file_bytes_ = static_cast<std::size_t>(status.st_size);
    mapped = ::mmap(nullptr, file_bytes_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  const int failed = errno;
  ::close(descriptor);
  if (known && !S_ISREG(status.st_mode)) refuse("it is no plain file");
  if (known && status.st_size == 0) refuse("it is empty");
  if (too_large) refuse(fmt::format("it has more than the {} that are read here", format_bytes(kLargestFile)));
  if (mapped == MAP_FAILED) throw_errno(ErrorKind::usage, fmt::format("map '{}'", path_.string()), failed, "mmap");
  mapped_ = static_cast<const std::byte*>(mapped);
}

void TokenFile::choose_format(std::optional<TokenFormat> wanted) {
  const std::string_view text(reinterpret_cast<const char*>(mapped_), file_bytes_);
  if (text.starts_with(kNpyMagic)) {
    read_npy_header();
    if (wanted && *wanted != format_) {
      refuse(fmt::format("it is a .npy of {}, and {} was asked for", to_string(format_), to_string(*wanted)));
    }
    return;
  }
  const std::string ending = path_.extension().string();
  if (wanted) {
    format_ = *wanted;
  } else if (ending == ".npy") {
    refuse("it does not begin as a .npy file does");
  } else if (ending == ".bin" || ending == ".u16") {
    format_ = TokenFormat::uint16;
  } else if (ending == ".i32") {
    format_ = TokenFormat::int32;
  } else {
    constexpr std::size_t kLooked = 4096;
    if (text.substr(0, kLooked).find('\0') != std::string_view::npos) {
      refuse(
          "it is no text, and its name ends neither in .bin or .u16 (uint16), .i32 (int32) nor .npy; say its format");
    }
    format_ = TokenFormat::bytes;
  }
  const std::size_t width = bytes_of(format_);
  if (file_bytes_ % width != 0) {
    refuse(fmt::format("its {} bytes are no whole number of {}-byte tokens ({}); it is cut off or of another format",
                       file_bytes_, width, to_string(format_)));
  }
  size_ = static_cast<std::int64_t>(file_bytes_ / width);
}

// Magic, two bytes of version, the header's length in two bytes (version 1) or four, the header: a Python dictionary
// {'descr': '<u2', 'fortran_order': False, 'shape': (1000,), }. Source: numpy.lib.format.
void TokenFile::read_npy_header() {
  const std::size_t version_at = kNpyMagic.size(), length_at = version_at + 2;
  if (file_bytes_ < length_at + 4) refuse("its .npy header is cut off");
  const bool first_version = std::to_integer<int>(mapped_[version_at]) == 1;
  std::size_t length = 0;
  std::memcpy(&length, mapped_ + length_at, first_version ? 2 : 4);
  data_begin_ = length_at + (first_version ? 2 : 4) + length;
  if (data_begin_ > file_bytes_) refuse("its .npy header is cut off");
  const std::string_view header(reinterpret_cast<const char*>(mapped_) + data_begin_ - length, length);

  const std::string_view descr = value_of(header, "descr");
  const std::string_view type =
      descr.starts_with('\'') ? descr.substr(1, descr.find('\'', 1) - 1) : descr.substr(0, 40);
  if (type == "|u1") {
    format_ = TokenFormat::bytes;
  } else if (type == "<u2") {
    format_ = TokenFormat::uint16;
  } else if (type == "<i4") {
    format_ = TokenFormat::int32;
  } else if (type == "<i8") {
    format_ = TokenFormat::int64;
  } else {
    refuse(
        fmt::format("its .npy is of dtype '{}'; read are |u1, <u2, <i4 and <i8 (little-endian uint8, uint16, int32, "
                    "int64)",
                    type));
  }
  const std::string_view shape = value_of(header, "shape");
  std::string_view sizes = shape.substr(0, shape.find(')'));
  if (!sizes.starts_with('(')) refuse("its .npy header tells no shape");
  sizes.remove_prefix(1);
  std::uint64_t count = 0;
  const auto [end, failed] = std::from_chars(sizes.data(), sizes.data() + sizes.size(), count);
  const std::string_view rest(end, static_cast<std::size_t>(sizes.data() + sizes.size() - end));
  if (failed != std::errc() || rest.find_first_not_of(", ") != std::string_view::npos) {
    refuse(fmt::format("its .npy has the shape ({}); tokens have one dimension", sizes));
  }
  const std::size_t there = file_bytes_ - data_begin_, width = bytes_of(format_);
  if (there % width != 0 || there / width != count) {
    refuse(fmt::format("its .npy should hold {} tokens of {} bytes, and {} bytes are there; it is cut off or damaged",
                       count, width, there));
  }
  if (count == 0) refuse("it holds no tokens");
  size_ = static_cast<std::int64_t>(count);
}

std::int64_t TokenFile::operator[](std::int64_t position) const {
  std::int64_t id = 0;
  load(position, std::span(&id, 1));
  return id;
}

void TokenFile::load(std::int64_t first, std::span<std::int64_t> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  if (first < 0 || count > size_ || first > size_ - count) {
    throw Error(ErrorKind::internal, fmt::format("tokens {} to {} of {}", first, first + count, size_));
  }
  const std::byte* from = mapped_ + data_begin_ + static_cast<std::size_t>(first) * bytes_of(format_);
  switch (format_) {
    case TokenFormat::bytes:
      load_all<std::uint8_t>(from, out);
      break;
    case TokenFormat::uint16:
      load_all<std::uint16_t>(from, out);
      break;
    case TokenFormat::int32:
      load_all<std::int32_t>(from, out);
      break;
    case TokenFormat::int64:
      load_all<std::int64_t>(from, out);
      break;
  }
}

void TokenFile::read(std::int64_t first, std::span<std::int64_t> out, std::int64_t vocab) const {
  load(first, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] >= 0 && out[i] < vocab) continue;
    refuse(
        fmt::format("token {} at position {} lies outside the vocabulary of {} (0 to {}); take a model with a larger "
                    "one, or say the file's format if it is not {}",
                    out[i], first + static_cast<std::int64_t>(i), vocab, vocab - 1, to_string(format_)));
  }
}

void TokenFile::check(std::int64_t vocab) const {
  std::vector<std::int64_t> piece;
  constexpr std::int64_t kPiece = 1 << 16;
  for (std::int64_t first = 0; first < size_; first += kPiece) {
    piece.resize(static_cast<std::size_t>(std::min(kPiece, size_ - first)));
    read(first, piece, vocab);
  }
}

std::string TokenFile::fingerprint() const {
  constexpr std::size_t kPieces = 64, kPieceBytes = 4096;
  Sha256 sha;
  sha.update(fmt::format("{} {} {}\n", to_string(format_), size_, file_bytes_));
  const std::size_t bytes = file_bytes_ - data_begin_;
  const std::span data(mapped_ + data_begin_, bytes);
  if (bytes <= kPieces * kPieceBytes) {
    sha.update(data);
  } else {
    for (std::size_t i = 0; i < kPieces; ++i) {
      // First and last piece are the file's first and last bytes.
      sha.update(data.subspan((bytes - kPieceBytes) / (kPieces - 1) * i, kPieceBytes));
    }
    sha.update(data.last(kPieceBytes));
  }
  std::string hex;
  for (const std::uint8_t byte : sha.finish()) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace syslab::train
