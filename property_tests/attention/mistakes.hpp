// The usual mistakes of attention, as changes of the right formulas: what suspects.cpp computes, and compares with what
// was found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

inline constexpr double kLog2E = 1.4426950408889634;

enum class RowTerm { right, out_with_itself, dout_with_itself };
enum class Lse {
  right,
  none,
  base_two,
  base_two_sum,
  maximum,
  sum,
  stale,
  unscaled,
  unscaled_maximum,
  scaled_maximum,
  of_last_tile
};

// What becomes of a sum over the tiles of keys before, when the running maximum grows from m to m′.
enum class Rescale {
  right,            // e^(m − m′)
  kept,             // 1
  nothing,          // 0
  twice,            // e^2(m − m′)
  backwards,        // e^(m′ − m)
  base_two,         // 2^(m − m′)
  unscaled,         // e^((m − m′)·√D)
  scaled_again,     // e^((m − m′)/√D)
  own_maximum,      // e^(m − the tile's own maximum)
  tile_before,      // e^(the tile before's own maximum − m′)
  odd_kept,         // 1 in every second tile, from the second on
  even_kept,        // … from the third on
  second_kept,      // 1 in the second tile
  last_kept,        // 1 in the last tile
  after,            // e^(m − m′), of the new tile as well, but for the first
  after_with_first  // … and the first, which becomes 0
};
enum class SumOf { both, out, lse };  // which of a row's two results a wrong sum goes into; the other's is right

// Over what weights are normalised.
enum class Over { keys, queries, heads, batch_entries, matrices, whole_matrix };

// Which tile of keys counts twice.
enum class Twice {
  none,
  last,       // of all keys
  last_read,  // of those that its tile of queries sees
  moved_back  // the last, partial one begins so early that it is whole: keys of the tile before are in both
};

struct Mistake {
  std::string kind;
  const char* look_at;
  std::int64_t tile = 0;  // of keys; 0: all keys at once
  double scale = 1;       // times the right one
  std::int64_t extra_keys = 0;
  bool no_mask = false, whole_diagonal = false, no_diagonal = false;
  Rescale accumulator = Rescale::right, sum = Rescale::right;
  SumOf sum_of = SumOf::both;
  bool short_memory = false;  // the running maximum is that of two tiles
  bool subtle = false;        // named only where no mistake that is not explains as much
  bool undivided = false;
  bool padded = false, cut = false;  // keys beyond the last whole tile: zeros take part, or none does
  bool first_batch = false, first_head = false;
  bool reshaped_keys = false;                   // K, (S, D) in memory, read as (D, S)
  bool local_keys = false, local_rows = false;  // the mask compares indices within a tile
  bool turned = false;    // a query sees itself and what is behind it, of the tiles that a right mask does not hide
  std::int64_t rows = 0;  // of a tile of queries; as many tiles of keys are read as of queries, though these are longer
  bool aligned = false, aligned_up = false;  // causal with the other corner; or so where there are more keys alone
  std::optional<double> hidden_score;        // of every key that a row must not see
  std::optional<double> hidden_summand;      // what is added to the scores of those
  bool masked_late = false;                  // these keys have a part in the row's sum, and none in O
  bool first_sees = false;                   // a row that would see no key sees the first
  bool nan_out = false, nan_lse = false;     // a row that sees no key is NaN, as a softmax of −∞ alone is
  std::int64_t masked_rows = 0;  // of a tile of queries; only the tile of keys with its index is masked inside
  std::int64_t skip_rows = 0;    // of a tile of queries; keys behind its last query are not read
  std::int64_t early_rows = 0;   // the same, and only one tile of keys from its first query on, though that is shorter
  bool first_keys = false;       // no mask in the first tile of keys
  std::int64_t first_rows = 0;   // no mask in so many first queries; with first_keys, only where both are
  Over over = Over::keys;
  bool lse_over = false;  // L is of the same sums, one a key
  bool nan_over = false;  // weights of a sum of nothing are NaN, not 0
  Twice twice = Twice::none;
  std::int64_t twice_rows = 0;  // of a tile of queries
  bool twice_in_sum = false, twice_in_out = false;
  Lse lse = Lse::right;
  // of the backward pass
  bool first_lse = false;  // L of the first batch entry for all
  bool no_row_term = false, plus_row_term = false, swapped = false, base_two_weights = false, exp2_weights = false;
  RowTerm row_term = RowTerm::right;
  bool dk_of_dout = false;                     // dK = dSᵀ dO
  bool no_dp = false;                          // dS = −P ∘ D
  bool own_softmax = false;                    // P divided by its own row sum, not made with L
  bool own_row_term = false;                   // D = rowsum(P ∘ dP), of that P
  bool only_dv = false, only_ds = false;       // hidden keys have a part in dV alone, in dQ and dK alone
  bool dq_of_p = false, dk_of_p = false;       // dQ = P K, dK = Pᵀ Q, with the factors below
  bool last_keys = false;                      // dQ of the last tile of keys alone, since each is assigned
  bool last_seen_keys = false;                 // the same of the last tile that the row sees
  bool last_queries = false;                   // dK and dV of the last tile of queries alone
  bool keys_again = false;                     // the last tile of keys counts twice in dQ
  bool keys_again_in_all = false;              // … and in dK and dV
  bool queries_again = false;                  // the last tile of queries counts twice in dK and dV
  bool queries_again_in_all = false;           // … and in dQ
  bool tile_weights = false;                   // P is the softmax of a tile of keys
  bool tile_row_term = false;                  // D is a sum over that tile of keys
  bool no_own_key = false, but_first = false;  // dK and dV without the last key that a row sees; of all rows but one
  bool cut_queries = false;                    // queries behind the last whole tile take no part
  double dq = 1, dk = 1, dv = 1;               // factors
};

std::vector<Mistake> forward_mistakes(const Problem& p);
std::vector<Mistake> backward_mistakes(const Problem& p);
// Of these, operands that are 0: one of the tensors may then be of one value, and the others say which operand it is.
std::vector<Mistake> zero_mistakes(Pass pass);

}  // namespace syslab::attention
