// Batches: which tokens a step learns from. A batch is a function of the seed and its number alone, so that a run
// resumed at batch n goes on as if it had never stopped, and ranks that share a batch draw their rows alone.
#pragma once

#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "train/token_file.hpp"

namespace syslab::train {

// ids (rows, context), row-major: x what the model reads, y the token that follows each.
struct Batch {
  std::vector<std::int64_t> x, y;
};

struct BatchOptions {
  std::int64_t rows = 4, context = 512, vocab = 10000;
  std::uint64_t seed = 0;
  // A part of a larger batch: rows [first_row, first_row + rows) of `all_rows` (0: `rows`).
  std::int64_t first_row = 0, all_rows = 0;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Writes batch `number` (from 0) into `out`, reusing its memory. A run counts every batch: with n micro-batches a
  // step, step s draws s·n … s·n + n − 1.
  virtual void draw(std::uint64_t number, Batch& out) const = 0;
};

// Windows of a token file that begin anywhere, y shifted by one: the start is uniform among the positions that leave
// context + 1 tokens. Of the file's tokens [first, end), so that a part can be kept for validation; `file` outlives
// this. Error(usage) for options that cannot be, a range with fewer than context + 1 tokens, and while drawing for an
// id outside the vocabulary, with its position.
class TokenBatches final : public BatchSource {
 public:
  TokenBatches(const TokenFile& file, const BatchOptions& options);
  TokenBatches(const TokenFile& file, const BatchOptions& options, std::int64_t first, std::int64_t end);
  void draw(std::uint64_t number, Batch& out) const override;
  // Where the window of a row begins in the file.
  std::int64_t start(std::uint64_t number, std::int64_t row) const;

 private:
  const TokenFile* file_;
  BatchOptions options_;
  std::int64_t first_, windows_;
  RandomStream stream_;
};

// Ids uniform in [0, vocab), y shifted by one: what a benchmark reads.
class RandomBatches final : public BatchSource {
 public:
  explicit RandomBatches(const BatchOptions& options);
  void draw(std::uint64_t number, Batch& out) const override;

 private:
  BatchOptions options_;
  RandomStream stream_;
};

}  // namespace syslab::train
