#include "property_tests/attention/suspects.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "property_tests/attention/axis_softmax.hpp"

namespace syslab::attention {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

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

  double dot_reshaped(const double* query, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t d = 0; d < p_.head_dim; ++d) sum += query[d] * key(s_.k, 0)[d * p_.seq_k + j];
    return sum;
  }

  std::int64_t keys_of(std::int64_t i) const {
    const bool all = m_.no_mask || m_.local_keys || p_.mask == Mask::none;
    std::int64_t count = all ? p_.seq_k : p_.visible_keys(m_.local_rows ? i % m_.tile : i) + m_.extra_keys;
    if (p_.mask != Mask::none) {
      const std::int64_t behind = p_.mask == Mask::top_left ? p_.seq_k - p_.seq_q : p_.seq_q - p_.seq_k;
      if (m_.aligned || (m_.aligned_up && behind > 0)) count += behind;
      if (m_.first_sees) count = std::max<std::int64_t>(count, 1);
      count = std::max(count, shown_of_first_tile(i));
      if (m_.masked_rows > 0) {
        const std::int64_t rows_end = std::min((i / m_.masked_rows + 1) * m_.masked_rows, p_.seq_q);
        count = ((rows_end - 1) / m_.tile + 1) * m_.tile;
      }
    }
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
  // Keys up to this one are shown to row i by a mask that is missing in the first tile.
  std::int64_t shown_of_first_tile(std::int64_t i) const {
    if (m_.first_rows > 0 && i >= m_.first_rows) return 0;
    if (!m_.first_keys) return m_.first_rows > 0 ? p_.seq_k : 0;
    return (std::max<std::int64_t>(m_.first_rows, 1) + m_.tile - 1) / m_.tile * m_.tile;
  }
  // Of the keys of row i: all, but where the mask has holes.
  bool sees(std::int64_t i, std::int64_t j) const {
    if (m_.turned && p_.mask != Mask::none) return j >= i + (p_.mask == Mask::bottom_right ? p_.seq_k - p_.seq_q : 0);
    if (m_.masked_rows > 0 && p_.mask != Mask::none) return j / m_.tile != i / m_.masked_rows || j < p_.visible_keys(i);
    return !m_.local_keys || p_.mask == Mask::none || j % m_.tile < p_.visible_keys(i);
  }
  bool counts_twice(std::int64_t i, std::int64_t j) const {
    if (m_.twice == Twice::none) return false;
    const std::int64_t whole = p_.seq_k / m_.tile * m_.tile;
    if (m_.twice == Twice::moved_back) return whole > 0 && j < whole && j >= p_.seq_k - m_.tile;
    std::int64_t read = p_.seq_k;
    if (m_.twice == Twice::last_read && m_.twice_rows > 0) {
      read = p_.visible_keys(std::min((i / m_.twice_rows + 1) * m_.twice_rows, p_.seq_q) - 1);
    }
    return j / m_.tile == (std::max<std::int64_t>(read, 1) - 1) / m_.tile;
  }
  double score(std::int64_t i, std::int64_t j) const {
    if (j >= p_.seq_k) return 0;
    const bool hidden = j >= p_.visible_keys(i);
    if (hidden && m_.hidden_score) return *m_.hidden_score;
    const double dots = m_.reshaped_keys ? dot_reshaped(query(s_.q, i), j) : dot(query(s_.q, i), key(s_.k, j));
    return m_.scale * p_.effective_scale() * dots + (hidden ? m_.hidden_summand.value_or(0) : 0);
  }

  // The online softmax of row i: its accumulator, maximum, sum and log-sum-exp.
  struct Row {
    std::vector<double> out;
    double largest = -kInfinite, sum = 0, stale = -kInfinite;
    double of_lse = 0;        // the sum that the log-sum-exp is made of
    double unscaled = 0;      // Σ e^(score without its scale)
    double own = -kInfinite;  // the maximum of the last tile
  };
  Row forward(std::int64_t i) const {
    Row r;
    r.out.assign(static_cast<std::size_t>(p_.head_dim), 0.0);
    const std::int64_t keys = keys_of(i), tile = m_.tile == 0 ? std::max<std::int64_t>(keys, 1) : m_.tile;
    const Rescale sum = m_.sum_of == SumOf::lse ? Rescale::right : m_.sum;
    const Rescale of_lse = m_.sum_of == SumOf::out ? Rescale::right : m_.sum;
    std::vector<double> scores;
    for (std::int64_t first = 0; first < keys; first += tile) {
      r.stale = r.largest + std::log(r.of_lse);
      const std::int64_t last = std::min(first + tile, keys);
      Step step{first / tile, last == keys, m_.short_memory ? r.own : r.largest, r.own, -kInfinite};
      scores.clear();
      for (std::int64_t j = first; j < last; ++j) {
        scores.push_back(sees(i, j) ? score(i, j) : -kInfinite);
        step.own = std::max(step.own, scores.back());
      }
      const double grown = std::max(step.before, step.own);
      r.sum *= before_adding(sum, step, grown);
      r.of_lse *= before_adding(of_lse, step, grown);
      for (double& x : r.out) x *= before_adding(m_.accumulator, step, grown);
      r.largest = grown;
      r.own = step.own;
      for (std::int64_t j = first; j < last; ++j) {
        const double exponent = scores[static_cast<std::size_t>(j - first)];
        if (!sees(i, j)) continue;
        const double once = std::exp(exponent - grown), twice = counts_twice(i, j) ? 2 * once : once;
        r.sum += m_.twice_in_sum ? twice : once;
        r.of_lse += m_.twice_in_sum ? twice : once;
        const double weight = m_.twice_in_out ? twice : once;
        if (m_.lse == Lse::unscaled) r.unscaled += std::exp(exponent / p_.effective_scale());
        if (m_.masked_late && j >= p_.visible_keys(i)) continue;
        for (std::int64_t d = 0; d < p_.head_dim && j < p_.seq_k; ++d) {
          r.out[static_cast<std::size_t>(d)] += weight * key(s_.v, j)[d];
        }
      }
      r.sum *= behind_adding(sum, step, grown);
      r.of_lse *= behind_adding(of_lse, step, grown);
      for (double& x : r.out) x *= behind_adding(m_.accumulator, step, grown);
    }
    if (r.sum > 0 && !m_.undivided) {
      for (double& x : r.out) x /= r.sum;
    }
    if (keys == 0 && m_.nan_out) std::fill(r.out.begin(), r.out.end(), kNaN);
    return r;
  }
  double lse(const Row& r) const {
    if (r.of_lse == 0) return m_.nan_lse ? kNaN : -kInfinite;
    switch (m_.lse) {
      case Lse::right:
        break;
      case Lse::none:
        return -kInfinite;
      case Lse::base_two:
        return kLog2E * (r.largest + std::log(r.of_lse));
      case Lse::base_two_sum:
        return r.largest + std::log2(r.of_lse);
      case Lse::maximum:
        return r.largest;
      case Lse::sum:
        return std::log(r.of_lse);
      case Lse::unscaled:
        return std::log(r.unscaled);
      case Lse::unscaled_maximum:
        return r.largest / p_.effective_scale() + std::log(r.of_lse);
      case Lse::scaled_maximum:
        return r.largest * p_.effective_scale() + std::log(r.of_lse);
      case Lse::of_last_tile:
        return r.own + std::log(r.of_lse);
      case Lse::stale:
        return std::isfinite(r.stale) ? r.stale : r.largest + std::log(r.of_lse);
    }
    return r.largest + std::log(r.of_lse);
  }

 private:
  // From one tile of keys to the next: which tile it is, the running maximum before it, and what each tile's own is.
  struct Step {
    std::int64_t index;
    bool last;
    double before, own_before, own;
  };
  double before_adding(Rescale rescale, const Step& step, double grown) const {
    if (step.index == 0) return 0;  // nothing to rescale yet
    const double fall = step.before - grown;
    const auto kept = [&](bool here) { return here ? 1.0 : std::exp(fall); };
    switch (rescale) {
      case Rescale::right:
        break;
      case Rescale::kept:
      case Rescale::after:
      case Rescale::after_with_first:
        return 1;
      case Rescale::nothing:
        return 0;
      case Rescale::twice:
        return std::exp(2 * fall);
      case Rescale::backwards:
        return std::exp(-fall);
      case Rescale::base_two:
        return std::exp2(fall);
      case Rescale::unscaled:
        return std::exp(fall / p_.effective_scale());
      case Rescale::scaled_again:
        return std::exp(fall * p_.effective_scale());
      case Rescale::own_maximum:
        return std::exp(step.before - step.own);
      case Rescale::tile_before:
        return std::exp(step.own_before - grown);
      case Rescale::odd_kept:
        return kept(step.index % 2 != 0);
      case Rescale::even_kept:
        return kept(step.index % 2 == 0);
      case Rescale::second_kept:
        return kept(step.index == 1);
      case Rescale::last_kept:
        return kept(step.last);
    }
    return std::exp(fall);
  }
  double behind_adding(Rescale rescale, const Step& step, double grown) const {
    if (rescale != Rescale::after && rescale != Rescale::after_with_first) return 1;
    if (step.index == 0) return rescale == Rescale::after ? 1 : 0;
    return std::exp(step.before - grown);
  }

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

WrittenOrNot over_another_axis(const Sample& sample, const Mistake& mistake, const RowIsAsFound& as_found) {
  const Problem& p = sample.problem;
  if (!AxisSoftmax::is_small_enough(p)) return std::nullopt;
  const AxisSoftmax softmax(sample, mistake);
  std::vector<double> out, lse;
  for (std::int64_t row = 0; row < p.batch * p.heads_q * p.seq_q; ++row) {
    const AxisSoftmax::Row r = softmax.row(row);
    if (!as_found(0, row * p.head_dim, r.out) || !as_found(1, row, {&r.lse, 1})) return std::nullopt;
    out.insert(out.end(), r.out.begin(), r.out.end());
    lse.push_back(r.lse);
  }
  return {{{"out", sample.query_shape(), std::move(out)}, {"lse", sample.lse_shape(), std::move(lse)}}};
}

WrittenOrNot wrong_forward(const Sample& sample, const Mistake& mistake, const RowIsAsFound& as_found) {
  if (mistake.over != Over::keys) return over_another_axis(sample, mistake, as_found);
  const std::int64_t dim = sample.problem.head_dim;
  std::vector<double> out(sample.q.size()), lse(static_cast<std::size_t>(sample.lse_shape().elements()));
  bool agrees = true;
  for_each_head(sample, mistake, [&](const WrongHead& head) {
    // The last row first: under a mask it sees most, and most suspects are given up there.
    for (std::int64_t i = sample.problem.seq_q - 1; agrees && i >= 0; --i) {
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

// Of one row: what mistakes that take a tile of keys for all of them make of each tile.
class TileSums {
 public:
  TileSums(const Mistake& mistake, const Sample& sample, const WrongHead& head, std::int64_t i, std::int64_t keys,
           double lse)
      : mistake_(mistake) {
    if (!mistake.tile_weights && !mistake.tile_row_term) return;
    const auto tiles = static_cast<std::size_t>((keys + mistake.tile - 1) / mistake.tile);
    weights_.assign(tiles, 0.0);
    row_terms_.assign(tiles, 0.0);
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!head.sees(i, j)) continue;
      const double weight = std::exp(head.score(i, j) - lse);
      weights_[tile_of(j)] += weight;
      row_terms_[tile_of(j)] += weight * head.dot(head.query(sample.dout, i), head.key(sample.v, j));
    }
  }
  double weights(std::int64_t j) const { return mistake_.tile_weights ? weights_[tile_of(j)] : 1.0; }
  double row_term(std::int64_t j) const { return row_terms_[tile_of(j)]; }

 private:
  std::size_t tile_of(std::int64_t j) const { return static_cast<std::size_t>(j / mistake_.tile); }

  const Mistake& mistake_;
  std::vector<double> weights_, row_terms_;
};

WrittenOrNot wrong_backward(const Sample& sample, const Mistake& mistake, const RowIsAsFound& as_found) {
  const Problem& p = sample.problem;
  const double scale = p.effective_scale();
  std::vector<double> dq(sample.q.size(), 0.0), dk(sample.k.size(), 0.0), dv(sample.v.size(), 0.0);
  // What the forward pass wrote was right: L and D are of the right mask.
  const Mistake none{.kind = "", .look_at = ""};
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t h = 0; h < p.heads_q; ++h) {
      const WrongHead head(sample, mistake, batch, h), right(sample, none, batch, h), first(sample, none, 0, h);
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
        const std::int64_t keys_again = mistake.keys_again ? (p.seq_k - 1) / mistake.tile * mistake.tile : p.seq_k;
        const bool row_again = mistake.queries_again && i >= (p.seq_q - 1) / mistake.tile * mistake.tile;
        const bool keeps_dk = !mistake.last_queries || i >= (p.seq_q - 1) / mistake.tile * mistake.tile;
        const WrongHead::Row again = mistake.own_softmax ? head.forward(i) : WrongHead::Row{};
        if (mistake.own_row_term) row_term = head.dot(again.out.data(), dout);
        const double own_lse = mistake.first_lse     ? first.lse(first.forward(i))
                               : mistake.own_softmax ? head.lse(again)
                                                     : right.lse(r);
        const double lse = (mistake.base_two_weights ? kLog2E : 1.0) * own_lse;
        const TileSums sums(mistake, sample, head, i, keys, lse);
        const std::int64_t diagonal = i + (p.mask == Mask::bottom_right ? p.seq_k - p.seq_q : 0);
        const std::int64_t own = mistake.no_own_key && !(mistake.but_first && i == 0) ? diagonal : -1;
        for (std::int64_t j = 0; j < keys; ++j) {
          const bool hidden = j >= p.visible_keys(i);
          if (!head.sees(i, j) || (hidden && mistake.masked_late)) continue;
          const double exponent = head.score(i, j) - lse;
          const double weight = (mistake.exp2_weights ? std::exp2(exponent) : std::exp(exponent)) / sums.weights(j);
          if (mistake.tile_row_term) row_term = sums.row_term(j);
          const double dp = mistake.no_dp ? 0.0 : head.dot(dout, head.key(sample.v, j));
          const double ds = hidden && mistake.only_dv ? 0.0 : scale * weight * (dp - row_term);
          const double dq_times = j >= keys_again || (row_again && mistake.queries_again_in_all) ? 2 : 1;
          const double dk_times = row_again || (j >= keys_again && mistake.keys_again_in_all) ? 2 : 1;
          const double of_dq = dq_times * mistake.dq * (mistake.dq_of_p ? weight : ds);
          const double of_dk = dk_times * mistake.dk * (mistake.dk_of_p ? weight : ds);
          const double of_dv = hidden && mistake.only_ds ? 0.0 : dk_times * mistake.dv * weight;
          for (std::int64_t d = 0; d < p.head_dim; ++d) {
            const auto q_at = static_cast<std::size_t>(head.row(i) * p.head_dim + d);
            const auto k_at = static_cast<std::size_t>(head.key_row(j) * p.head_dim + d);
            if (j >= dq_from) dq[q_at] += of_dq * head.key(sample.k, j)[d];
            if (!keeps_dk || j == own) continue;
            dk[k_at] += of_dk * (mistake.dk_of_dout ? dout : head.query(sample.q, i))[d];
            dv[k_at] += of_dv * dout[d];
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

std::vector<Suspect> suspects(const Sample& sample, Pass pass, const RowIsAsFound& as_found,
                              const std::function<bool(const std::string& kind)>& tried,
                              std::span<const Mistake> more) {
  const bool forward = pass == Pass::forward;
  std::vector<Suspect> list;
  std::vector<Mistake> mistakes = forward ? forward_mistakes(sample.problem) : backward_mistakes(sample.problem);
  mistakes.insert(mistakes.end(), more.begin(), more.end());
  for (const Mistake& mistake : mistakes) {
    if (!tried(mistake.kind)) continue;
    auto written = forward ? wrong_forward(sample, mistake, as_found) : wrong_backward(sample, mistake, as_found);
    const bool carried = mistake.accumulator != Rescale::right || mistake.sum != Rescale::right ||
                         mistake.short_memory || mistake.lse == Lse::stale || mistake.twice != Twice::none ||
                         mistake.keys_again || mistake.queries_again;
    if (written) {
      list.push_back({mistake.kind, mistake.look_at, mistake.tile, mistake.subtle, carried, *std::move(written)});
    }
  }
  return list;
}

}  // namespace syslab::attention
