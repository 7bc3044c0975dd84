#include "ops/attention/oracle/glimpse.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.hpp"
#include "ops/attention/rows.hpp"

namespace syslab::attention {
namespace {

using Numbers = std::vector<double>;
constexpr int kRowsACall = 2;  // of out a call: who leaves half of them out has to be lucky twice

std::size_t as_size(std::int64_t index) { return static_cast<std::size_t>(index); }

// Numbers below a limit, one after the other.
class Draws {
 public:
  explicit Draws(std::uint64_t key) : stream_(key) {}
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(stream_.bits(position_++) % static_cast<std::uint64_t>(end));
  }

 private:
  RandomStream stream_;
  std::uint64_t position_ = 0;
};

Numbers row_of_doubles(const ConstTensorView& view, std::int64_t batch, std::int64_t head, std::int64_t position) {
  Numbers values(as_size(view.size(3)));
  with_storage(view.dtype, [&]<typename T>(T) {
    const T* first = row_of<T>(view, batch, head, position);
    std::transform(first, first + values.size(), values.begin(), [](T x) { return to_double(x); });
  });
  return values;
}

double one_of(const ConstTensorView& view, std::int64_t batch, std::int64_t head, std::int64_t position) {
  double value = 0;
  with_storage(view.dtype, [&]<typename T>(T) { value = to_double(element_of<T>(view, batch, head, position)); });
  return value;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
  return sum;
}

// products[j] = query · row j of the head, for the first `count` rows.
Numbers products_of(const Numbers& query, const ConstTensorView& view, std::int64_t batch, std::int64_t head,
                    std::int64_t count) {
  Numbers sums(as_size(count));
  with_storage(view.dtype, [&]<typename T>(T) {
    for (std::int64_t j = 0; j < count; ++j) {
      const T* other = row_of<T>(view, batch, head, j);
      double sum = 0;
      for (std::size_t d = 0; d < query.size(); ++d) sum += query[d] * to_double(other[d]);
      sums[as_size(j)] = sum;
    }
  });
  return sums;
}

// Σ_j weights[j] · row j of the head.
Numbers weighted_rows(const Numbers& weights, const ConstTensorView& view, std::int64_t batch, std::int64_t head) {
  Numbers sums(as_size(view.size(3)), 0.0);
  with_storage(view.dtype, [&]<typename T>(T) {
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const T* other = row_of<T>(view, batch, head, static_cast<std::int64_t>(j));
      for (std::size_t d = 0; d < sums.size(); ++d) sums[d] += weights[j] * to_double(other[d]);
    }
  });
  return sums;
}

// Of each row of the head with the row of the same position: D of the backward pass.
Numbers row_dots(const ConstTensorView& a, const ConstTensorView& b, std::int64_t batch, std::int64_t head) {
  Numbers dots(as_size(a.size(2)));
  with_storage(a.dtype, [&]<typename T>(T) {
    for (std::int64_t i = 0; i < a.size(2); ++i) {
      const T *x = row_of<T>(a, batch, head, i), *y = row_of<T>(b, batch, head, i);
      double sum = 0;
      for (std::int64_t d = 0; d < a.size(3); ++d) sum += to_double(x[d]) * to_double(y[d]);
      dots[as_size(i)] = sum;
    }
  });
  return dots;
}

struct QueryRow {
  Numbers probability, out;
  double lse = -std::numeric_limits<double>::infinity();
};

struct HeadPlace {
  std::int64_t batch, head, kv_head;  // of queries; of the keys they read
};

HeadPlace place_of(const Problem& p, Draws& draws) {
  const std::int64_t flat = draws.below(p.batch * p.heads_q), head = flat % p.heads_q;
  return {flat / p.heads_q, head, head / (p.heads_q / p.heads_kv)};
}

QueryRow query_row(const Problem& p, const ConstTensorView& q, const ConstTensorView& k, const ConstTensorView& v,
                   const HeadPlace& place, std::int64_t i) {
  QueryRow found;
  found.probability =
      products_of(row_of_doubles(q, place.batch, place.head, i), k, place.batch, place.kv_head, p.visible_keys(i));
  if (!found.probability.empty()) {
    const double scale = p.effective_scale();
    const double largest = scale * *std::max_element(found.probability.begin(), found.probability.end());
    double sum = 0;
    for (double& x : found.probability) sum += x = std::exp(scale * x - largest);
    for (double& x : found.probability) x /= sum;
    found.lse = largest + std::log(sum);
  }
  found.out = weighted_rows(found.probability, v, place.batch, place.kv_head);
  return found;
}

std::int64_t flat_row(std::int64_t batch, std::int64_t heads, std::int64_t head, std::int64_t rows, std::int64_t i) {
  return (batch * heads + head) * rows + i;
}

Numbers dq_row(const Problem& p, const BackwardTensors& given, const HeadPlace& place, std::int64_t i) {
  const QueryRow forward = query_row(p, given.q, given.k, given.v, place, i);
  const Numbers dout = row_of_doubles(given.dout, place.batch, place.head, i);
  const double delta = dot(dout, forward.out), scale = p.effective_scale();
  Numbers ds = products_of(dout, given.v, place.batch, place.kv_head, p.visible_keys(i));
  for (std::size_t j = 0; j < ds.size(); ++j) ds[j] = scale * forward.probability[j] * (ds[j] - delta);
  return weighted_rows(ds, given.k, place.batch, place.kv_head);
}

}  // namespace

std::vector<Glimpse> forward_glimpse(const Problem& p, const ConstTensorView& q, const ConstTensorView& k,
                                     const ConstTensorView& v, std::uint64_t random) {
  Draws draws(random);
  const HeadPlace place = place_of(p, draws);
  std::vector<Glimpse> glimpses;
  for (int n = 0; n < kRowsACall; ++n) {
    const std::int64_t i = draws.below(p.seq_q), flat = flat_row(place.batch, p.heads_q, place.head, p.seq_q, i);
    QueryRow found = query_row(p, q, k, v, place, i);
    glimpses.push_back({0, flat * p.head_dim, std::move(found.out)});
    glimpses.push_back({1, flat, {found.lse}});
  }
  return glimpses;
}

std::vector<Glimpse> backward_glimpse(const Problem& p, const BackwardTensors& given, std::uint64_t random) {
  Draws draws(random);
  const HeadPlace place = place_of(p, draws);
  const std::int64_t i = draws.below(p.seq_q), j = draws.below(p.seq_k), per_group = p.heads_q / p.heads_kv;
  const double scale = p.effective_scale();
  std::vector<Glimpse> glimpses;
  glimpses.push_back(
      {0, flat_row(place.batch, p.heads_q, place.head, p.seq_q, i) * p.head_dim, dq_row(p, given, place, i)});

  const Numbers key = row_of_doubles(given.k, place.batch, place.kv_head, j),
                value = row_of_doubles(given.v, place.batch, place.kv_head, j);
  Numbers dk(as_size(p.head_dim), 0.0), dv(as_size(p.head_dim), 0.0);
  for (std::int64_t head = place.kv_head * per_group; head < (place.kv_head + 1) * per_group; ++head) {
    Numbers probability = products_of(key, given.q, place.batch, head, p.seq_q);
    Numbers ds = products_of(value, given.dout, place.batch, head, p.seq_q);
    const Numbers delta = row_dots(given.dout, given.out, place.batch, head);
    for (std::int64_t row_q = 0; row_q < p.seq_q; ++row_q) {
      double& weight = probability[as_size(row_q)];
      if (p.visible_keys(row_q) <= j) {
        weight = ds[as_size(row_q)] = 0;
        continue;
      }
      weight = std::exp(scale * weight - one_of(given.lse, place.batch, head, row_q));
      ds[as_size(row_q)] = scale * weight * (ds[as_size(row_q)] - delta[as_size(row_q)]);
    }
    const Numbers more_k = weighted_rows(ds, given.q, place.batch, head);
    const Numbers more_v = weighted_rows(probability, given.dout, place.batch, head);
    for (std::size_t d = 0; d < dk.size(); ++d) dk[d] += more_k[d], dv[d] += more_v[d];
  }
  const std::int64_t flat = flat_row(place.batch, p.heads_kv, place.kv_head, p.seq_k, j) * p.head_dim;
  glimpses.push_back({1, flat, std::move(dk)});
  glimpses.push_back({2, flat, std::move(dv)});
  return glimpses;
}

}  // namespace syslab::attention
