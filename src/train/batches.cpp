#include "train/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.hpp"

namespace syslab::train {
namespace {

BatchOptions checked(BatchOptions options) {
  const auto require = [](std::string_view name, std::int64_t value) {
    if (value < 1)
      throw Error(ErrorKind::usage, fmt::format("impossible batch: {} is {}; it must be at least 1", name, value));
  };
  require("rows", options.rows);
  require("context", options.context);
  require("vocab", options.vocab);
  if (options.all_rows == 0) options.all_rows = options.rows;
  if (options.first_row < 0 || options.first_row > options.all_rows - options.rows) {
    throw Error(ErrorKind::usage, fmt::format("impossible batch: rows {} to {} of {}", options.first_row,
                                              options.first_row + options.rows, options.all_rows));
  }
  return options;
}

// The row's number among all rows ever drawn.
std::uint64_t row_of(const BatchOptions& options, std::uint64_t number, std::int64_t row) {
  return number * static_cast<std::uint64_t>(options.all_rows) + static_cast<std::uint64_t>(options.first_row + row);
}

void resize(Batch& batch, const BatchOptions& options) {
  const auto tokens = static_cast<std::size_t>(options.rows * options.context);
  batch.x.resize(tokens);
  batch.y.resize(tokens);
}

// `sequence` has context + 1 tokens.
void place(const std::vector<std::int64_t>& sequence, std::int64_t row, Batch& out) {
  const auto context = static_cast<std::ptrdiff_t>(sequence.size()) - 1;
  std::copy(sequence.begin(), sequence.end() - 1, out.x.begin() + row * context);
  std::copy(sequence.begin() + 1, sequence.end(), out.y.begin() + row * context);
}

}  // namespace

TokenBatches::TokenBatches(const TokenFile& file, const BatchOptions& options)
    : TokenBatches(file, options, 0, file.size()) {}

TokenBatches::TokenBatches(const TokenFile& file, const BatchOptions& options, std::int64_t first, std::int64_t end)
    : file_(&file),
      options_(checked(options)),
      first_(first),
      windows_(end - first - options.context),
      stream_(RandomStream::derive(options.seed, "train", "batches", "windows")) {
  if (first < 0 || end > file.size() || first > end) {
    throw Error(ErrorKind::usage,
                fmt::format("tokens {} to {} of '{}', which has {}", first, end, file.path().string(), file.size()));
  }
  if (windows_ < 1) {
    throw Error(
        ErrorKind::usage,
        fmt::format("'{}' has {} tokens to draw from, and a window of context {} takes {}; take a longer file or a "
                    "shorter context",
                    file.path().string(), end - first, options.context, options.context + 1));
  }
}

// 64 random bits times the number of windows, the high half: uniform to within windows / 2^64.
std::int64_t TokenBatches::start(std::uint64_t number, std::int64_t row) const {
  const std::uint64_t at = 2 * row_of(options_, number, row);
  const std::uint64_t bits = (static_cast<std::uint64_t>(stream_.bits(at)) << 32) | stream_.bits(at + 1);
  __extension__ using Wide = unsigned __int128;
  return first_ + static_cast<std::int64_t>((static_cast<Wide>(bits) * static_cast<Wide>(windows_)) >> 64);
}

void TokenBatches::draw(std::uint64_t number, Batch& out) const {
  resize(out, options_);
  std::vector<std::int64_t> sequence(static_cast<std::size_t>(options_.context) + 1);
  for (std::int64_t row = 0; row < options_.rows; ++row) {
    file_->read(start(number, row), sequence, options_.vocab);
    place(sequence, row, out);
  }
}

RandomBatches::RandomBatches(const BatchOptions& options)
    : options_(checked(options)), stream_(RandomStream::derive(options.seed, "train", "batches", "random ids")) {}

void RandomBatches::draw(std::uint64_t number, Batch& out) const {
  resize(out, options_);
  std::vector<std::int64_t> sequence(static_cast<std::size_t>(options_.context) + 1);
  const auto vocab = static_cast<std::uint64_t>(options_.vocab);
  for (std::int64_t row = 0; row < options_.rows; ++row) {
    const std::uint64_t first = row_of(options_, number, row) * sequence.size();
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      sequence[i] = static_cast<std::int64_t>((stream_.bits(first + i) * vocab) >> 32);
    }
    place(sequence, row, out);
  }
}

}  // namespace syslab::train
