#include "property_tests/attention/mistakes.hpp"

#include <cmath>

namespace syslab::attention {
namespace {

constexpr const char* kMask = "the comparison of query and key index, and whether the tile's first index is in both";

// Of masks: of both passes.
void add_mask_mistakes(std::vector<Mistake>& list) {
  const char* const where =
      "i >= j against i + S_k - S_q >= j: with another number of keys the diagonal begins elsewhere";
  const char* const corner = "a mask that is aligned with the other corner";
  list.push_back({.kind = corner, .look_at = where, .aligned = true});
  list.push_back({.kind = corner, .look_at = where, .aligned_up = true});
  const char* const few = "a mask that shows one key too few";
  list.push_back({.kind = few, .look_at = kMask, .extra_keys = -1, .first_sees = true});
  for (const bool nan_lse : {false, true}) {
    list.push_back({.kind = few, .look_at = kMask, .extra_keys = -1, .nan_out = true, .nan_lse = nan_lse});
  }
  for (const std::int64_t tile : {8, 16, 32, 64, 128}) {
    for (const std::int64_t rows : {tile / 2, 2 * tile, 4 * tile}) {
      list.push_back({.kind = "a mask on too few tiles, only where the indices of both tiles are equal",
                      .look_at = "which tiles the diagonal goes through: their sizes differ",
                      .tile = tile,
                      .masked_rows = rows});
    }
  }
}

// Of a mask that the first tile goes without: of both passes.
void add_first_tile_mistakes(std::vector<Mistake>& list) {
  const char *const first = "a mask that is missing in the first tile",
                    *const where = "the first round of the loop, and which tiles the diagonal goes through";
  const auto add = [&](std::int64_t tile, bool keys, std::int64_t rows) {
    // Subtle: a first tile that holds all of a short input is no mask at all.
    list.push_back(
        {.kind = first, .look_at = where, .tile = tile, .subtle = true, .first_keys = keys, .first_rows = rows});
  };
  for (const std::int64_t tile : {8, 16, 32, 64, 128}) {
    add(tile, true, 0);
    add(tile, false, tile);
    // Tiles of other sizes, where the loop over keys ends with the last that the tile of queries sees.
    for (const std::int64_t rows : {tile / 4, tile / 2, 2 * tile, 4 * tile}) add(tile, true, rows);
  }
}

// Of masks and of tiles: of both passes.
void add_tile_mistakes(std::vector<Mistake>& list) {
  for (const std::int64_t tile : {0, 8, 16, 32, 64, 128}) {
    list.push_back({.kind = "a mask the wrong way round",
                    .look_at = "which index of the mask is the query's: a product may be transposed, and its mask not",
                    .tile = tile,
                    .turned = true});
  }
  for (const std::int64_t tile : {8, 16, 32, 64, 128}) {
    list.push_back({.kind = "a mask that takes a key's index within its tile",
                    .look_at = "the first key of the tile, which belongs to the index",
                    .tile = tile,
                    .local_keys = true});
    for (const std::int64_t times : {1, 2, 4}) {
      list.push_back({.kind = "a mask that takes a key's index within its tile",
                      .look_at = "the first key of the tile, which belongs to the index",
                      .tile = tile,
                      .local_keys = true,
                      .skip_rows = times * tile});
    }
    list.push_back({.kind = "a mask that takes a query's index within its tile",
                    .look_at = "the first query of the tile, which belongs to the index",
                    .tile = tile,
                    .local_rows = true});
    for (const std::int64_t times : {2, 4}) {
      list.push_back({.kind = "a causal loop over keys that ends too early",
                      .look_at = "how many tiles of keys a tile of queries sees: their sizes differ",
                      .tile = tile,
                      .rows = times * tile});
      list.push_back({.kind = "a causal loop over keys that ends too early",
                      .look_at = "how many tiles of keys a tile of queries sees: their sizes differ",
                      .tile = tile,
                      .early_rows = times * tile});
    }
  }
}

// Of a tile of keys that is added a second time.
void add_twice_mistakes(std::vector<Mistake>& list, std::int64_t tile) {
  struct Sums {
    const char* kind;
    bool sum, out;
  };
  for (const auto& [kind, sum, out] : {Sums{"a last tile of keys that counts twice", true, true},
                                       Sums{"a last tile of keys that counts twice in the row sum", true, false},
                                       Sums{"a last tile of keys that counts twice in P V", false, true}}) {
    const Mistake any{.kind = kind,
                      .look_at = "the end of the loop over keys, and what comes behind it",
                      .tile = tile,
                      .twice_in_sum = sum,
                      .twice_in_out = out};
    const auto add = [&](Twice twice, std::int64_t rows) {
      list.push_back(any);
      list.back().twice = twice;
      list.back().twice_rows = rows;
    };
    add(Twice::last, 0);
    for (const std::int64_t rows : {std::int64_t{1}, tile / 4, tile / 2, tile, 2 * tile, 4 * tile}) {
      add(Twice::last_read, rows);
    }
    add(Twice::moved_back, 0);
  }
}

// Of softmax along another axis.
void add_axis_mistakes(std::vector<Mistake>& list, const Problem& p) {
  for (const bool nan : {false, true}) {
    const auto add = [&](Over over, bool lse) {
      list.push_back({.kind = "a softmax over the wrong axis",
                      .look_at = "dim or axis of the softmax, of its maximum and of its sum: it is over keys, the last",
                      .over = over,
                      .lse_over = lse,
                      .nan_over = nan});
    };
    add(Over::queries, false);
    if (p.seq_q == p.seq_k) add(Over::queries, true);
    add(Over::whole_matrix, false);
    if (p.heads_q > 1) add(Over::heads, false);
    if (p.batch > 1) add(Over::batch_entries, false);
    if (p.heads_q > 1 && p.batch > 1) add(Over::matrices, false);
  }
}

// Of the online softmax: of each sum that is carried from tile to tile of keys, alone and together.
void add_rescaling_mistakes(std::vector<Mistake>& list, std::int64_t tile) {
  const char* const factor = "the factor e^(m − m′) when the running maximum grows";
  const char* const maximum = "m, which is the maximum of all keys so far, in e^(m − m′) and where it is kept";
  struct Way {
    Rescale rescale;
    const char* words;
    const char* look_at;
    bool subtle = true;
  };
  const char *const other_base = "rescaled in another base or with another scale than the weights have",
                    *const tiles_maximum = "rescaled by a tile's own maximum in place of the running one",
                    *const seldom = "not rescaled in every second tile",
                    *const once = "not rescaled in one of the tiles",
                    *const late = "rescaled behind what a tile adds, not before";
  const Way ways[] = {
      {Rescale::kept, "not rescaled", factor, false},
      {Rescale::backwards, "rescaled by e^(m′ − m), the wrong way round", factor, false},
      {Rescale::twice, "rescaled twice", factor},
      {Rescale::base_two, other_base, factor},
      {Rescale::unscaled, other_base, factor},
      {Rescale::scaled_again, other_base, factor},
      {Rescale::own_maximum, tiles_maximum, maximum},
      {Rescale::tile_before, tiles_maximum, maximum},
      {Rescale::odd_kept, seldom, "the parts of a loop that is unrolled: each has its factor"},
      {Rescale::even_kept, seldom, "the parts of a loop that is unrolled: each has its factor"},
      {Rescale::second_kept, once, "the first and the last round of the loop over tiles of keys"},
      {Rescale::last_kept, once, "the first and the last round of the loop over tiles of keys"},
      {Rescale::after, late, "the order of the two lines: first the factor, then P V or the sum"},
      {Rescale::after_with_first, late, "the order of the two lines: first the factor, then P V or the sum"}};
  for (const Way& way : ways) {
    const auto add = [&](const char* what, Mistake mistake) {
      mistake.kind = std::string(what) + " " + way.words;
      mistake.look_at = way.look_at;
      mistake.tile = tile;
      mistake.subtle = way.subtle;
      list.push_back(std::move(mistake));
    };
    const Rescale r = way.rescale;
    add("an accumulator that is", {.kind = "", .look_at = "", .accumulator = r});
    add("a row sum that is", {.kind = "", .look_at = "", .sum = r});
    add("an accumulator and a row sum that are", {.kind = "", .look_at = "", .accumulator = r, .sum = r});
    add("the row sum that O is divided by, which is", {.kind = "", .look_at = "", .sum = r, .sum_of = SumOf::out});
    add("the row sum of L, which is", {.kind = "", .look_at = "", .sum = r, .sum_of = SumOf::lse});
  }
  for (const Lse lse : {Lse::right, Lse::of_last_tile}) {
    list.push_back({.kind = "a running maximum that forgets what came before the last tile",
                    .look_at = maximum,
                    .tile = tile,
                    .short_memory = true,
                    .subtle = true,
                    .lse = lse});
  }
}

// Of a mask in the backward pass alone.
void add_backward_mask_mistakes(std::vector<Mistake>& list, const Problem& p) {
  const Mistake none{.kind = "no mask in the backward pass", .look_at = "whether is_causal arrives", .no_mask = true};
  list.push_back(none);
  if (p.mask == Mask::none) return;
  const Mistake zeros{.kind = "masked scores that are 0 in place of −∞ in the backward pass",
                      .look_at = "the mask in P = exp(S − L), by which scores are perhaps multiplied",
                      .no_mask = true,
                      .hidden_score = 0.0};
  list.push_back(zeros);
  const Mistake late{.kind = "a mask behind the softmax of the backward pass, not before",
                     .look_at = "the scores: masked with −∞ before the softmax",
                     .no_mask = true,
                     .masked_late = true};
  for (const Mistake& mistake : {none, zeros, late}) {  // P is not made with L, but by a softmax once more
    for (const bool own_row_term : {false, true}) {
      list.push_back(mistake);
      list.back().own_softmax = true;
      list.back().own_row_term = own_row_term;
    }
  }
  const char* const one = "P, which is masked in dV = Pᵀ dO and in dS = P ∘ (dP − D): one and the same";
  list.push_back({.kind = "no mask in dV alone", .look_at = one, .no_mask = true, .only_dv = true});
  list.push_back({.kind = "no mask in dQ and dK alone", .look_at = one, .no_mask = true, .only_ds = true});
}

}  // namespace

std::vector<Mistake> forward_mistakes(const Problem& p) {
  const double scale = p.effective_scale();
  std::vector<Mistake> list;
  const double root = std::sqrt(scale);  // D^(-1/4), which both factors of a product may have got
  for (const double wrong : {1.0, 1.0 / static_cast<double>(p.head_dim), scale * scale, 1 / scale, scale * root, root,
                             scale * kLog2E, scale / kLog2E, 2 * scale, scale / 2, std::sqrt(0.5) * scale}) {
    list.push_back({.kind = "scores with another scale", .look_at = "where 1/√D comes in", .scale = wrong / scale});
  }
  for (const std::int64_t length : {p.seq_q, p.seq_k}) {
    list.push_back({.kind = "scores scaled by 1/√S in place of 1/√D",
                    .look_at = "which size the scale takes: the length, or the head's width",
                    .scale = 1 / std::sqrt(static_cast<double>(length)) / scale});
  }
  for (const std::int64_t extra : {1, -1}) {
    list.push_back({.kind = extra > 0 ? "a mask that shows one key too many" : "a mask that shows one key too few",
                    .look_at = kMask,
                    .extra_keys = extra});
  }
  list.push_back({.kind = "no mask at all", .look_at = "whether is_causal arrives", .no_mask = true});
  list.push_back({.kind = "masked scores that are 0 in place of −∞",
                  .look_at = "tril, or a product with the mask: of a hidden key e^0 takes part",
                  .no_mask = true,
                  .hidden_score = 0.0});
  list.push_back({.kind = "a mask behind the softmax, not before",
                  .look_at = "where the mask comes in: the row's sum is of visible keys alone",
                  .no_mask = true,
                  .masked_late = true});
  list.push_back(
      {.kind = "an output that is not divided by the row's sum", .look_at = "the end of the loop", .undivided = true});
  list.push_back({.kind = "keys and values of the first batch entry for all",
                  .look_at = "the batch's offset",
                  .first_batch = true});
  list.push_back(
      {.kind = "keys and values of the first head for all", .look_at = "the head's offset", .first_head = true});
  list.push_back({.kind = "keys that are reshaped to (D, S), not transposed",
                  .look_at = "Q Kᵀ: view or reshape keeps the order in memory, transpose exchanges the axes",
                  .reshaped_keys = true});
  const char* const base = "a log-sum-exp in base 2";
  list.push_back({.kind = base, .look_at = "log and log2 at the end of the loop", .lse = Lse::base_two});
  list.push_back({.kind = base, .look_at = "log and log2 at the end of the loop", .lse = Lse::base_two_sum});
  list.push_back(
      {.kind = "a log-sum-exp that is the row's maximum alone", .look_at = "m + log l", .lse = Lse::maximum});
  list.push_back({.kind = "a log-sum-exp without the row's maximum", .look_at = "m + log l", .lse = Lse::sum});
  list.push_back({.kind = "a log-sum-exp of scores without their scale",
                  .look_at = "which scores L is made of",
                  .lse = Lse::unscaled});
  list.push_back({.kind = "a log-sum-exp whose maximum is without its scale",
                  .look_at = "m + log l: m must be of the scores that l is made of",
                  .lse = Lse::unscaled_maximum});
  list.push_back({.kind = "a log-sum-exp whose maximum is scaled twice",
                  .look_at = "m + log l: m must be of the scores that l is made of",
                  .lse = Lse::scaled_maximum});
  for (const std::int64_t tile : {1, 8, 16, 32, 64, 128}) {
    const char* const carried = "m, l and the accumulator: each is carried from tile to tile";
    list.push_back({.kind = "a row sum of the last tile of keys alone",
                    .look_at = carried,
                    .tile = tile,
                    .sum = Rescale::nothing});
    list.push_back({.kind = "an accumulator of the last tile of keys alone",
                    .look_at = carried,
                    .tile = tile,
                    .accumulator = Rescale::nothing});
    for (const Lse lse : {Lse::right, Lse::none}) {
      list.push_back({.kind = "the last tile of keys alone",
                      .look_at = carried,
                      .tile = tile,
                      .accumulator = Rescale::nothing,
                      .sum = Rescale::nothing,
                      .lse = lse});
    }
    list.push_back({.kind = "a log-sum-exp from before the last tile of keys",
                    .look_at = "where L is stored",
                    .tile = tile,
                    .lse = Lse::stale});
    if (tile == 1) continue;
    add_twice_mistakes(list, tile);
    list.push_back(
        {.kind = "a diagonal tile that is not masked inside", .look_at = kMask, .tile = tile, .whole_diagonal = true});
    list.push_back({.kind = "a diagonal tile that is left out",
                    .look_at = "the last tile of the loop over keys",
                    .tile = tile,
                    .no_diagonal = true});
    list.push_back({.kind = "padding behind the last key that takes part",
                    .look_at = "the last, partial tile of keys",
                    .tile = tile,
                    .padded = true});
    list.push_back({.kind = "keys behind the last whole tile left out",
                    .look_at = "the number of tiles, rounded up",
                    .tile = tile,
                    .cut = true});
  }
  for (const std::int64_t tile : {1, 8, 16, 32, 64, 128}) {
    add_rescaling_mistakes(list, tile);
  }
  add_axis_mistakes(list, p);
  add_tile_mistakes(list);
  add_first_tile_mistakes(list);
  add_mask_mistakes(list);
  const std::vector<Mistake> zeros = zero_mistakes(Pass::forward);
  list.insert(list.end(), zeros.begin(), zeros.end());
  return list;
}

std::vector<Mistake> backward_mistakes(const Problem& p) {
  const double scale = p.effective_scale();
  const char* const kRowTerm = "dS = P ∘ (dP − D) with D = rowsum(O ∘ dO)";
  std::vector<Mistake> list;
  list.push_back({.kind = "dS without the row term D", .look_at = kRowTerm, .no_row_term = true});
  list.push_back({.kind = "the row term D added in place of subtracted", .look_at = kRowTerm, .plus_row_term = true});
  list.push_back({.kind = "dK and dV exchanged", .look_at = "the order of the outputs", .swapped = true});
  list.push_back({.kind = "weights made of e^x in place of 2^x, or the other way round",
                  .look_at = "P = exp(S − L): both in one base",
                  .base_two_weights = true});
  list.push_back({.kind = "weights made of e^x in place of 2^x, or the other way round",
                  .look_at = "P = exp(S − L): both in one base",
                  .exp2_weights = true});
  list.push_back({.kind = "a row term D of O with itself", .look_at = kRowTerm, .row_term = RowTerm::out_with_itself});
  list.push_back(
      {.kind = "a row term D of dO with itself", .look_at = kRowTerm, .row_term = RowTerm::dout_with_itself});
  list.push_back({.kind = "dK made with dO in place of Q", .look_at = "dK = dSᵀ Q", .dk_of_dout = true});
  for (const double factor : {1.0, scale}) {
    const char* const where = "which of P and dS each product takes: dV = Pᵀ dO, dQ = dS K, dK = dSᵀ Q";
    list.push_back({.kind = "dK made of P in place of dS", .look_at = where, .dk_of_p = true, .dk = factor});
    list.push_back({.kind = "dQ made of P in place of dS", .look_at = where, .dq_of_p = true, .dq = factor});
    list.push_back({.kind = "dQ and dK made of P in place of dS",
                    .look_at = where,
                    .dq_of_p = true,
                    .dk_of_p = true,
                    .dq = factor,
                    .dk = factor});
  }
  for (const double wrong : {1.0, 1.0 / static_cast<double>(p.head_dim), scale * scale}) {
    list.push_back({.kind = "weights of the backward pass from scores with another scale",
                    .look_at = "P = exp(S − L): S with the scale of the forward pass",
                    .scale = wrong / scale});
  }
  list.push_back({.kind = "weights of the backward pass with the L of the first batch entry",
                  .look_at = "the batch's offset in L",
                  .first_lse = true});
  if (p.mask != Mask::none) {
    for (const bool but_first : {false, true}) {
      list.push_back({.kind = "dK and dV without the diagonal",
                      .look_at = "the loop over queries of a key: it begins with the key's own",
                      .no_own_key = true,
                      .but_first = but_first});
    }
  }
  for (const double factor : {1 / scale, scale, -1.0}) {
    const char* const where = "the factor 1/√D of dQ and dK";
    list.push_back({.kind = "dQ with another scale", .look_at = where, .dq = factor});
    list.push_back({.kind = "dK with another scale", .look_at = where, .dk = factor});
    list.push_back({.kind = "dV with a scale", .look_at = "dV = Pᵀ dO", .dv = factor});
    list.push_back({.kind = "dQ and dK with another scale", .look_at = where, .dq = factor, .dk = factor});
  }
  add_backward_mask_mistakes(list, p);
  for (const std::int64_t extra : {1, -1}) {
    list.push_back({.kind = extra > 0 ? "a backward mask that shows one key too many"
                                      : "a backward mask that shows one key too few",
                    .look_at = kMask,
                    .extra_keys = extra});
  }
  for (const std::int64_t tile : {8, 16, 32, 64, 128}) {
    list.push_back(
        {.kind = "a diagonal tile that is not masked inside", .look_at = kMask, .tile = tile, .whole_diagonal = true});
    list.push_back({.kind = "keys behind the last whole tile left out",
                    .look_at = "the number of tiles, rounded up",
                    .tile = tile,
                    .cut = true});
    list.push_back({.kind = "queries behind the last whole tile left out of the gradients",
                    .look_at = "the number of tiles of queries, rounded up",
                    .tile = tile,
                    .cut_queries = true});
    list.push_back({.kind = "weights of a tile of keys, each normalised by itself",
                    .look_at = "P = exp(S − L), with the L of all keys",
                    .tile = tile,
                    .tile_weights = true});
    list.push_back({.kind = "a row term D of one tile of keys",
                    .look_at = "D = rowsum(O ∘ dO), which is a sum over all keys",
                    .tile = tile,
                    .tile_row_term = true});
    const char* const assigned = "dQ assigned tile after tile of keys, not added up";
    list.push_back({.kind = assigned, .look_at = "= and += of dQ", .tile = tile, .last_keys = true});
    list.push_back({.kind = assigned, .look_at = "= and += of dQ", .tile = tile, .last_seen_keys = true});
    list.push_back({.kind = "dK and dV assigned tile after tile of queries, not added up",
                    .look_at = "= and += of dK and dV",
                    .tile = tile,
                    .last_queries = true});
    const char *const keys = "a last tile of keys that counts twice",
                      *const queries = "a last tile of queries that counts twice",
                      *const end = "the end of the loop, and what comes behind it";
    list.push_back({.kind = keys, .look_at = end, .tile = tile, .keys_again = true});
    list.push_back({.kind = keys, .look_at = end, .tile = tile, .keys_again = true, .keys_again_in_all = true});
    list.push_back({.kind = queries, .look_at = end, .tile = tile, .queries_again = true});
    list.push_back(
        {.kind = queries, .look_at = end, .tile = tile, .queries_again = true, .queries_again_in_all = true});
  }
  add_tile_mistakes(list);
  add_first_tile_mistakes(list);
  add_mask_mistakes(list);
  const std::vector<Mistake> zeros = zero_mistakes(Pass::backward);
  list.insert(list.end(), zeros.begin(), zeros.end());
  return list;
}

std::vector<Mistake> zero_mistakes(Pass pass) {
  if (pass == Pass::forward) {
    return {{.kind = "scores that are all 0",
             .look_at = "Q, K and the scale in the scores: one of them is 0 there, as 1/√D in integers is",
             .scale = 0}};
  }
  const char* const read = "where it is loaded, and P = exp(S − L), whose scores it leaves at 0";
  return {{.kind = "queries that are 0 in the backward pass", .look_at = read, .scale = 0, .dk = 0},
          {.kind = "keys that are 0 in the backward pass", .look_at = read, .scale = 0, .dq = 0},
          {.kind = "a scale of the backward pass that is 0",
           .look_at = "1/√D, which is 0 in integers; the scores in P = exp(S − L) are 0 by it, and dQ and dK",
           .scale = 0,
           .dq = 0,
           .dk = 0},
          {.kind = "scores of the backward pass that are all 0",
           .look_at = "Q, K and the scale in P = exp(S − L): one of them is 0 there",
           .scale = 0},
          {.kind = "dP = dO Vᵀ that is 0", .look_at = "V and dO in dP, and where dP is computed", .no_dp = true}};
}

}  // namespace syslab::attention
