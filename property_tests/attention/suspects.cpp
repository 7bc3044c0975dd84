#include "property_tests/attention/suspects.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace syslab::attention {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kLog2E = 1.4426950408889634;

enum class RowTerm { right, out_with_itself, dout_with_itself };
enum class Lse { right, none, base_two, base_two_sum, maximum, sum, stale, unscaled, unscaled_maximum };

struct Mistake {
  const char* kind;
  const char* look_at;
  std::int64_t tile = 0;  // of keys; 0: all keys at once
  double scale = 1;       // times the right one
  std::int64_t extra_keys = 0;
  bool no_mask = false, whole_diagonal = false, no_diagonal = false;
  bool kept_accumulator = false, kept_sum = false, undivided = false;
  bool padded = false, cut = false;  // keys beyond the last whole tile: zeros take part, or none does
  bool first_batch = false, first_head = false;
  bool local_keys = false, local_rows = false;  // the mask compares indices within a tile
  bool turned = false;  // a query sees itself and what is behind it, of the tiles that a right mask does not hide
  bool last_sum = false, last_accumulator = false;  // of the last tile of keys alone
  bool shrinks_backwards = false;                   // e^(m′ − m) in place of e^(m − m′)
  std::int64_t rows = 0;  // of a tile of queries; as many tiles of keys are read as of queries, though these are longer
  std::int64_t skip_rows = 0;   // of a tile of queries; keys behind its last query are not read
  std::int64_t early_rows = 0;  // the same, and only one tile of keys from its first query on, though that is shorter
  Lse lse = Lse::right;
  // of the backward pass
  bool no_row_term = false, plus_row_term = false, swapped = false, base_two_weights = false, exp2_weights = false;
  RowTerm row_term = RowTerm::right;
  bool dk_of_dout = false;        // dK = dSᵀ dO
  bool last_keys = false;         // dQ of the last tile of keys alone, since each is assigned
  bool last_seen_keys = false;    // the same of the last tile that the row sees
  bool last_queries = false;      // dK and dV of the last tile of queries alone
  bool cut_queries = false;       // queries behind the last whole tile take no part
  double dq = 1, dk = 1, dv = 1;  // factors
};

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

constexpr const char* kMask = "the comparison of query and key index, and whether the tile's first index is in both";

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
  list.push_back(
      {.kind = "an output that is not divided by the row's sum", .look_at = "the end of the loop", .undivided = true});
  list.push_back({.kind = "keys and values of the first batch entry for all",
                  .look_at = "the batch's offset",
                  .first_batch = true});
  list.push_back(
      {.kind = "keys and values of the first head for all", .look_at = "the head's offset", .first_head = true});
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
  for (const std::int64_t tile : {1, 8, 16, 32, 64, 128}) {
    const char* const rescale = "the factor e^(m − m′) when the running maximum grows";
    list.push_back(
        {.kind = "an accumulator that is not rescaled", .look_at = rescale, .tile = tile, .kept_accumulator = true});
    list.push_back({.kind = "a row sum that is not rescaled", .look_at = rescale, .tile = tile, .kept_sum = true});
    list.push_back({.kind = "neither accumulator nor row sum rescaled",
                    .look_at = rescale,
                    .tile = tile,
                    .kept_accumulator = true,
                    .kept_sum = true});
    list.push_back({.kind = "a rescaling by e^(m′ − m), the wrong way round",
                    .look_at = rescale,
                    .tile = tile,
                    .shrinks_backwards = true});
    const char* const carried = "m, l and the accumulator: each is carried from tile to tile";
    list.push_back(
        {.kind = "a row sum of the last tile of keys alone", .look_at = carried, .tile = tile, .last_sum = true});
    list.push_back({.kind = "an accumulator of the last tile of keys alone",
                    .look_at = carried,
                    .tile = tile,
                    .last_accumulator = true});
    for (const Lse lse : {Lse::right, Lse::none}) {
      list.push_back({.kind = "the last tile of keys alone",
                      .look_at = carried,
                      .tile = tile,
                      .last_sum = true,
                      .last_accumulator = true,
                      .lse = lse});
    }
    list.push_back({.kind = "a log-sum-exp from before the last tile of keys",
                    .look_at = "where L is stored",
                    .tile = tile,
                    .lse = Lse::stale});
    if (tile == 1) continue;
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
  add_tile_mistakes(list);
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
  for (const double factor : {1 / scale, scale, -1.0}) {
    const char* const where = "the factor 1/√D of dQ and dK";
    list.push_back({.kind = "dQ with another scale", .look_at = where, .dq = factor});
    list.push_back({.kind = "dK with another scale", .look_at = where, .dk = factor});
    list.push_back({.kind = "dV with a scale", .look_at = "dV = Pᵀ dO", .dv = factor});
    list.push_back({.kind = "dQ and dK with another scale", .look_at = where, .dq = factor, .dk = factor});
  }
  list.push_back({.kind = "no mask in the backward pass", .look_at = "whether is_causal arrives", .no_mask = true});
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
    const char* const assigned = "dQ assigned tile after tile of keys, not added up";
    list.push_back({.kind = assigned, .look_at = "= and += of dQ", .tile = tile, .last_keys = true});
    list.push_back({.kind = assigned, .look_at = "= and += of dQ", .tile = tile, .last_seen_keys = true});
    list.push_back({.kind = "dK and dV assigned tile after tile of queries, not added up",
                    .look_at = "= and += of dK and dV",
                    .tile = tile,
                    .last_queries = true});
  }
  add_tile_mistakes(list);
  return list;
}

// The rows of one query head with the keys that it reads.
class WrongHead {
 public:
  WrongHead(const Sample& sample, const Mistake& mistake, std::int64_t batch, std::int64_t head)
      : s_(sample), p_(sample.problem), m_(mistake), head_(batch * p_.heads_q + head) {
    const std::int64_t own = head / (p_.heads_q / p_.heads_kv);
    written_ = batch * p_.heads_kv + own;
    read_ = (m_.first_batch ? 0 : batch) * p_.heads_kv + (m_.first_head ? 0 : own);
  }

  const double* query(const std::vector<double>& tensor, std::int64_t i) const {
    return tensor.data() + row(i) * p_.head_dim;
  }
  const double* key(const std::vector<double>& tensor, std::int64_t j) const {
    return tensor.data() + (read_ * p_.seq_k + j) * p_.head_dim;
  }
  std::int64_t row(std::int64_t i) const { return head_ * p_.seq_q + i; }
  std::int64_t key_row(std::int64_t j) const { return written_ * p_.seq_k + j; }
  double dot(const double* a, const double* b) const {
    double sum = 0;
    for (std::int64_t d = 0; d < p_.head_dim; ++d) sum += a[d] * b[d];
    return sum;
  }

  std::int64_t keys_of(std::int64_t i) const {
    const bool all = m_.no_mask || m_.local_keys || p_.mask == Mask::none;
    std::int64_t count = all ? p_.seq_k : p_.visible_keys(m_.local_rows ? i % m_.tile : i) + m_.extra_keys;
    if (p_.mask != Mask::none && m_.turned)
      return m_.tile == 0 ? p_.seq_k : std::min(p_.seq_k, (i / m_.tile + 1) * m_.tile);
    if (p_.mask != Mask::none && m_.rows > 0) count = std::min(count, (i / m_.rows + 1) * m_.tile);
    if (p_.mask != Mask::none && m_.skip_rows > 0) count = std::min(count, (i / m_.skip_rows + 1) * m_.skip_rows);
    if (p_.mask != Mask::none && m_.early_rows > 0)
      count = std::min(count, i / m_.early_rows * m_.early_rows + m_.tile);
    if (p_.mask != Mask::none && m_.whole_diagonal) count = (count + m_.tile - 1) / m_.tile * m_.tile;
    if (p_.mask != Mask::none && m_.no_diagonal) count = count / m_.tile * m_.tile;
    count = std::clamp<std::int64_t>(count, 0, p_.seq_k);
    if (m_.cut) count = std::min(count, p_.seq_k / m_.tile * m_.tile);
    // A mask hides the padding of every row but those that see all keys.
    const bool sees_all = count == p_.seq_k && p_.mask == Mask::none;
    return m_.padded && sees_all ? (count + m_.tile - 1) / m_.tile * m_.tile : count;
  }
  // Of the keys of row i: all, but where the mask has holes.
  bool sees(std::int64_t i, std::int64_t j) const {
    if (m_.turned && p_.mask != Mask::none) return j >= i + (p_.mask == Mask::bottom_right ? p_.seq_k - p_.seq_q : 0);
    return !m_.local_keys || p_.mask == Mask::none || j % m_.tile < p_.visible_keys(i);
  }
  double score(std::int64_t i, std::int64_t j) const {
    return j < p_.seq_k ? m_.scale * p_.effective_scale() * dot(query(s_.q, i), key(s_.k, j)) : 0.0;
  }

  // The online softmax of row i: its accumulator, maximum, sum and log-sum-exp.
  struct Row {
    std::vector<double> out;
    double largest = -kInfinite, sum = 0, stale = -kInfinite;
    double unscaled = 0;  // Σ e^(score without its scale)
  };
  Row forward(std::int64_t i) const {
    Row r;
    r.out.assign(static_cast<std::size_t>(p_.head_dim), 0.0);
    const std::int64_t keys = keys_of(i), tile = m_.tile == 0 ? std::max<std::int64_t>(keys, 1) : m_.tile;
    for (std::int64_t first = 0; first < keys; first += tile) {
      r.stale = r.largest + std::log(r.sum);
      const std::int64_t last = std::min(first + tile, keys);
      double grown = r.largest;
      for (std::int64_t j = first; j < last; ++j) grown = sees(i, j) ? std::max(grown, score(i, j)) : grown;
      const double fall = m_.shrinks_backwards ? grown - r.largest : r.largest - grown;
      const double shrink = first == 0 ? 0.0 : std::exp(fall);
      if (!m_.kept_sum) r.sum *= m_.last_sum ? 0.0 : shrink;
      for (double& x : r.out) x *= m_.last_accumulator ? 0.0 : m_.kept_accumulator ? 1.0 : shrink;
      r.largest = grown;
      for (std::int64_t j = first; j < last; ++j) {
        if (!sees(i, j)) continue;
        const double weight = std::exp(score(i, j) - grown);
        r.sum += weight;
        if (m_.lse == Lse::unscaled) r.unscaled += std::exp(score(i, j) / p_.effective_scale());
        for (std::int64_t d = 0; d < p_.head_dim && j < p_.seq_k; ++d) {
          r.out[static_cast<std::size_t>(d)] += weight * key(s_.v, j)[d];
        }
      }
    }
    if (r.sum > 0 && !m_.undivided) {
      for (double& x : r.out) x /= r.sum;
    }
    return r;
  }
  double lse(const Row& r) const {
    if (r.sum == 0) return -kInfinite;
    switch (m_.lse) {
      case Lse::right:
        break;
      case Lse::none:
        return -kInfinite;
      case Lse::base_two:
        return kLog2E * (r.largest + std::log(r.sum));
      case Lse::base_two_sum:
        return r.largest + std::log2(r.sum);
      case Lse::maximum:
        return r.largest;
      case Lse::sum:
        return std::log(r.sum);
      case Lse::unscaled:
        return std::log(r.unscaled);
      case Lse::unscaled_maximum:
        return r.largest / p_.effective_scale() + std::log(r.sum);
      case Lse::stale:
        return std::isfinite(r.stale) ? r.stale : r.largest + std::log(r.sum);
    }
    return r.largest + std::log(r.sum);
  }

 private:
  const Sample& s_;
  const Problem& p_;
  const Mistake& m_;
  std::int64_t head_, written_ = 0, read_ = 0;
};

template <typename Visit>
void for_each_head(const Sample& sample, const Mistake& mistake, const Visit& visit) {
  for (std::int64_t batch = 0; batch < sample.problem.batch; ++batch) {
    for (std::int64_t head = 0; head < sample.problem.heads_q; ++head) visit(WrongHead(sample, mistake, batch, head));
  }
}

// Nothing, as soon as a row is not what was found.
using WrittenOrNot = std::optional<std::vector<Written>>;

WrittenOrNot wrong_forward(const Sample& sample, const Mistake& mistake, const RowIsAsFound& as_found) {
  const std::int64_t dim = sample.problem.head_dim;
  std::vector<double> out(sample.q.size()), lse(static_cast<std::size_t>(sample.lse_shape().elements()));
  bool agrees = true;
  for_each_head(sample, mistake, [&](const WrongHead& head) {
    for (std::int64_t i = 0; agrees && i < sample.problem.seq_q; ++i) {
      const WrongHead::Row r = head.forward(i);
      std::copy(r.out.begin(), r.out.end(), out.begin() + head.row(i) * dim);
      double& logarithm = lse[static_cast<std::size_t>(head.row(i))];
      logarithm = head.lse(r);
      agrees = as_found(0, head.row(i) * dim, r.out) && as_found(1, head.row(i), {&logarithm, 1});
    }
  });
  if (!agrees) return std::nullopt;
  return {{{"out", sample.query_shape(), std::move(out)}, {"lse", sample.lse_shape(), std::move(lse)}}};
}

WrittenOrNot wrong_backward(const Sample& sample, const Mistake& mistake, const RowIsAsFound& as_found) {
  const Problem& p = sample.problem;
  const double scale = p.effective_scale();
  std::vector<double> dq(sample.q.size(), 0.0), dk(sample.k.size(), 0.0), dv(sample.v.size(), 0.0);
  // What the forward pass wrote was right: L and D are of the right mask.
  const Mistake none{.kind = "", .look_at = ""};
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t h = 0; h < p.heads_q; ++h) {
      const WrongHead head(sample, mistake, batch, h), right(sample, none, batch, h);
      for (std::int64_t i = 0; i < p.seq_q; ++i) {
        const WrongHead::Row r = right.forward(i);
        const double* dout = head.query(sample.dout, i);
        double row_term = mistake.no_row_term ? 0.0 : head.dot(r.out.data(), dout);
        if (mistake.plus_row_term) row_term = -row_term;
        if (mistake.row_term == RowTerm::out_with_itself) row_term = head.dot(r.out.data(), r.out.data());
        if (mistake.row_term == RowTerm::dout_with_itself) row_term = head.dot(dout, dout);
        const std::int64_t keys =
            mistake.cut_queries && i >= p.seq_q / mistake.tile * mistake.tile ? 0 : std::min(head.keys_of(i), p.seq_k);
        const std::int64_t behind = mistake.last_keys ? p.seq_k : mistake.last_seen_keys ? keys : 0;
        const std::int64_t dq_from = behind > 0 ? (behind - 1) / mistake.tile * mistake.tile : 0;
        const bool keeps_dk = !mistake.last_queries || i >= (p.seq_q - 1) / mistake.tile * mistake.tile;
        const double lse = (mistake.base_two_weights ? kLog2E : 1.0) * right.lse(r);
        for (std::int64_t j = 0; j < keys; ++j) {
          if (!head.sees(i, j)) continue;
          const double exponent = head.score(i, j) - lse;
          const double weight = mistake.exp2_weights ? std::exp2(exponent) : std::exp(exponent);
          const double ds = scale * weight * (head.dot(dout, head.key(sample.v, j)) - row_term);
          for (std::int64_t d = 0; d < p.head_dim; ++d) {
            const auto q_at = static_cast<std::size_t>(head.row(i) * p.head_dim + d);
            const auto k_at = static_cast<std::size_t>(head.key_row(j) * p.head_dim + d);
            if (j >= dq_from) dq[q_at] += mistake.dq * ds * head.key(sample.k, j)[d];
            if (!keeps_dk) continue;
            dk[k_at] += mistake.dk * ds * (mistake.dk_of_dout ? dout : head.query(sample.q, i))[d];
            dv[k_at] += mistake.dv * weight * dout[d];
          }
        }
        const std::span<const double> row{dq.data() + head.row(i) * p.head_dim, static_cast<std::size_t>(p.head_dim)};
        if (!as_found(0, head.row(i) * p.head_dim, row)) return std::nullopt;
      }
    }
  }
  if (mistake.swapped) std::swap(dk, dv);
  return {{{"dq", sample.query_shape(), std::move(dq)},
           {"dk", sample.key_shape(), std::move(dk)},
           {"dv", sample.key_shape(), std::move(dv)}}};
}

}  // namespace

std::vector<Suspect> suspects(const Sample& sample, Pass pass, const RowIsAsFound& as_found) {
  const bool forward = pass == Pass::forward;
  std::vector<Suspect> list;
  for (const Mistake& mistake : forward ? forward_mistakes(sample.problem) : backward_mistakes(sample.problem)) {
    auto written = forward ? wrong_forward(sample, mistake, as_found) : wrong_backward(sample, mistake, as_found);
    if (written) list.push_back({mistake.kind, mistake.look_at, *std::move(written)});
  }
  return list;
}

}  // namespace syslab::attention
