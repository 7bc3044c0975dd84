// Full sharding's description of a model: its matrices, which of them are read and gathered together, in which order;
// and what each rank keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "model/precision.hpp"
#include "model/reads.hpp"

namespace syslab::parallel {

// Sharded along its rows: rank r has rows [r·c, (r+1)·c), c = ⌈rows / ranks⌉, of which those beyond the last are zero.
struct ShardedMatrix {
  std::string name;
  std::int64_t rows = 1, width = 1;
};

// Complete on every rank.
struct ReplicatedTensor {
  std::string name;
  std::int64_t elements = 1;
};

// Matrices that are adjacent without gaps once gathered, and read as one.
struct FsdpBracket {
  std::vector<int> matrices;
  DType gathered = DType::f32;   // in which they travel and are read
  std::optional<DType> product;  // in which products make their gradients, and can write them; none: no product does
};

struct FsdpParts {
  DType dtype = DType::f32;  // of shards, gradients and what is replicated
  std::vector<ShardedMatrix> matrices;
  std::vector<ReplicatedTensor> replicated;
  std::vector<FsdpBracket> brackets;               // in the order in which their gradients become final
  std::vector<std::vector<int>> units;             // brackets that are gathered together; each in one
  std::vector<int> forward_reads, training_reads;  // brackets, as a pass reads them
};

// `layer`: what one product reads is gathered by itself, and the embedding: the hand-out's, but for Q, K and V, which
// one product reads, and W1 and W3. `block`: a block's matrices together.
enum class Granularity { layer, block };
std::string_view to_string(Granularity granularity);
Granularity parse_granularity(std::string_view text);  // Error(usage) with the nearest name

// Of the transformer: matrices are its linear layers and embedding in registration order, replicated are its norms.
// They are gathered in the dtype that products read, the embedding in that of the residual stream where that is
// smaller than the weights'.
struct TransformerParts {
  FsdpParts parts;
  std::vector<int> matrix_of, replicated_of, bracket_of;  // by parameter; −1: none. Brackets by their first parameter
};
TransformerParts parts_of(const model::ParameterLayout& layout, const model::DTypes& dtypes, model::Recompute recompute,
                          Granularity granularity);

// Layout of one rank's memory: shards of all matrices in order, then replicated tensors, each aligned.
class ShardLayout {
 public:
  ShardLayout(const FsdpParts& parts, int ranks);  // Error(usage) for a matrix or tensor without elements

  int ranks() const { return ranks_; }
  std::int64_t chunk_rows(int matrix) const { return shards_[at(matrix)].chunk_rows; }
  std::int64_t chunk(int matrix) const { return shards_[at(matrix)].chunk; }    // elements of a shard, padding too
  std::int64_t offset(int matrix) const { return shards_[at(matrix)].offset; }  // of the shard
  // Rows of a rank's shard that are the matrix's: the first ones.
  std::int64_t own_rows(int matrix, int rank) const;
  std::int64_t replicated_offset(int tensor) const { return replicated_[at(tensor)]; }
  std::int64_t sharded_elements() const { return sharded_elements_; }  // where what is replicated begins
  std::int64_t elements() const { return elements_; }
  // Of elements(): what is there so that all begin at aligned addresses, besides rows of zeros.
  std::int64_t alignment() const { return alignment_; }

 private:
  struct Shard {
    std::int64_t rows = 0, chunk_rows = 0, chunk = 0, offset = 0;
  };
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  int ranks_;
  std::vector<Shard> shards_;
  std::vector<std::int64_t> replicated_;
  std::int64_t sharded_elements_ = 0, elements_ = 0, alignment_ = 0;
};

}  // namespace syslab::parallel
