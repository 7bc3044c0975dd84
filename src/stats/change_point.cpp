#include "stats/change_point.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "stats/summary.hpp"

namespace syslab::stats {
namespace {

constexpr double kErrors = 4;
constexpr std::size_t kFewestDifferences = 5;
constexpr double kMedianOfDifference = 0.954;  // 0.6745 · √2: of |x − y|, both normal with deviation 1

double mean_level(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Nothing of few values, where a step cannot be told apart from noise; then noise_beside() is used.
std::optional<double> noise_of(std::span<const double> values) {
  std::vector<double> differences;
  for (std::size_t i = 1; i < values.size(); ++i) differences.push_back(std::abs(values[i] - values[i - 1]));
  if (differences.size() < kFewestDifferences) return std::nullopt;
  std::sort(differences.begin(), differences.end());
  return quantile(differences, 0.5) / kMedianOfDifference;
}

// The largest difference of neighbours, but for that of the step before `place`: 0 of two values.
double noise_beside(std::span<const double> values, std::size_t place) {
  double largest = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (i != place) largest = std::max(largest, std::abs(values[i] - values[i - 1]));
  }
  return largest / kMedianOfDifference;
}

void cut(std::span<const double> logs, std::size_t offset, std::optional<double> noise, double least,
         std::vector<std::size_t>& places) {
  double best = 0;
  std::size_t place = 0;
  for (std::size_t i = 1; i < logs.size(); ++i) {
    const double before = static_cast<double>(i), after = static_cast<double>(logs.size() - i);
    const double difference = std::abs(mean_level(logs.subspan(i)) - mean_level(logs.first(i)));
    const double error = noise.value_or(noise_beside(logs, i)) * std::sqrt(1 / before + 1 / after);
    if (difference <= std::log1p(least) || difference <= kErrors * error) continue;
    // What the cut explains of the sum of squares, so that a step is found where it is and not beside an end.
    const double weight = difference * std::sqrt(before * after / (before + after));
    if (weight > best) {
      best = weight;
      place = i;
    }
  }
  if (place == 0) return;
  cut(logs.first(place), offset, noise, least, places);
  places.push_back(offset + place);
  cut(logs.subspan(place), offset + place, noise, least, places);
}

}  // namespace

std::vector<ChangePoint> change_points(std::span<const double> logs, double least) {
  std::vector<std::size_t> places;
  if (logs.size() > 1) cut(logs, 0, noise_of(logs), least, places);
  std::vector<ChangePoint> found;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : places[i - 1], end = i + 1 < places.size() ? places[i + 1] : logs.size();
    found.push_back({places[i], mean_level(logs.subspan(places[i], end - places[i])) -
                                    mean_level(logs.subspan(begin, places[i] - begin))});
  }
  return found;
}

}  // namespace syslab::stats
