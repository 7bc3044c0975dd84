// add_pin, pins, find_pin: names given to runs. A pin is never moved; the newest of its name counts.
#include "store/impl.hpp"

namespace syslab::store {
namespace {

PinRow pin_of(const Statement& row) {
  return {.name = row.text(0), .at = row.text(1), .run_uid = row.text(2), .note = row.text(3)};
}

constexpr std::string_view kPins =
    "SELECT name, at, run_uid, coalesce(note, '') FROM pin WHERE ?1 IS NULL OR name = ?1 "
    "ORDER BY name, at DESC, run_uid DESC";

}  // namespace

void Store::add_pin(const std::string& name, const std::string& run_uid, const std::string& note) {
  Connection& db = impl_->writable();
  Transaction transaction(db);
  db.cached("INSERT INTO pin (name, at, run_uid, note) VALUES (?, ?, ?, ?)")
      .run(name, impl_->options.now(), run_uid, note.empty() ? std::nullopt : std::optional(note));
  transaction.commit();
}

std::vector<PinRow> Store::pins() const {
  std::vector<PinRow> pins;
  Statement found(impl_->db(), kPins);
  while (found.step()) pins.push_back(pin_of(found));
  return pins;
}

std::optional<PinRow> Store::find_pin(const std::string& name) const {
  Statement found(impl_->db(), kPins);
  if (!found.with(name).step()) return std::nullopt;
  return pin_of(found);
}

}  // namespace syslab::store
