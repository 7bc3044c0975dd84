#include "store/own_runs.hpp"

#include <fmt/format.h>

#include "store/impl.hpp"

namespace syslab::store {
namespace {

constexpr std::string_view kFiles =
    "SELECT DISTINCT i.name, i.digest, coalesce(p.mine_path, '') FROM plan_case p JOIN implementation i ON i.id = "
    "p.implementation_id WHERE p.run_id = ? AND (i.is_mine OR p.mine_path IS NOT NULL) ORDER BY 1, 2, 3";

// Each part is preceded by its length, so that the text can be divided in only one way.
std::string part(const std::string& text) { return fmt::format("{}:{}", text.size(), text); }

Mac mac_of_run(Connection& db, RowId run, const Key& key) {
  std::string said;
  Statement uid(db, "SELECT uid FROM run WHERE id = ?");
  if (uid.with(run).step()) said += part(uid.text(0));
  Statement files(db, kFiles);
  files.with(run);
  while (files.step()) said += part(files.text(0)) + part(files.text(1)) + part(files.text(2));
  return mac_of(key, {"syslab run 1\n", said});
}

}  // namespace

bool loads_files(Connection& db, RowId run) { return Statement(db, kFiles).with(run).step(); }

void sign_run(Connection& db, RowId run, const Key& key) {
  const Mac mac = mac_of_run(db, run, key);
  Statement insert(db, "INSERT INTO run_mac (run_uid, mac) SELECT uid, ?2 FROM run WHERE id = ?1");
  insert.bind(1, run);
  insert.bind_blob(2, bytes_of(mac));
  insert.step();
}

bool Store::is_own(RowId run) const {
  Connection& db = impl_->db();
  Statement stored(db, "SELECT mac FROM run_mac WHERE run_uid = (SELECT uid FROM run WHERE id = ?)");
  stored.with(run);
  if (!stored.step()) return false;  // a question that does not need the key does not create one
  const Mac expected = mac_of_run(db, run, impl_->options.key());
  do {
    if (same(expected, stored.text(0))) return true;
  } while (stored.step());
  return false;
}

}  // namespace syslab::store
