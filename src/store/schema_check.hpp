// Whether a file's schema is ours. A schema is evaluated when tables are read and written (views, triggers, computed
// columns, expressions of indexes), so a file from elsewhere is compared before anything of it is used.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "store/migrate.hpp"

namespace syslab::store {

// Error(store), naming the first difference, unless each object of the schema is, text for text, what the migrations up
// to the file's version make. A trigger or an index may be missing, which harms nobody but the file's owner.
void require_our_schema(Connection& connection, const Schema& schema);
// Of a file that is attached as `database`, and called `shown_as` in messages.
void require_our_schema(Connection& connection, const Schema& schema, std::string_view database,
                        const std::filesystem::path& shown_as);

// The triggers and indexes that are missing, each as "the trigger 'run_no_delete' is missing". Needs our schema.
std::vector<std::string> missing_objects(Connection& connection, const Schema& schema);

// Of what the migrations up to `version` make: db/schema_digests.txt holds it for those that were released.
std::string schema_digest(const Schema& schema, int version);

}  // namespace syslab::store
