-- Schema version 3: which runs this user made, and a schema in which nothing computes.

-- That this user's own program wrote the run, and which files of --mine it loads: HMAC-SHA-256 under a key that never
-- leaves her state folder. Merged like all data: only she can make a row that counts for her.
CREATE TABLE run_mac (
  run_uid TEXT NOT NULL,
  mac     BLOB NOT NULL,
  PRIMARY KEY (run_uid, mac)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER run_mac_no_update BEFORE UPDATE ON run_mac BEGIN SELECT raise(ABORT, 'run_mac is append-only'); END;
CREATE TRIGGER run_mac_no_delete BEFORE DELETE ON run_mac BEGIN SELECT raise(ABORT, 'run_mac is append-only'); END;

-- Views, columns that are computed and checks of JSON are made by the program that opens the file, as temporary objects
-- of its own connection (db/views, db/checks): a file from elsewhere then brings nothing that is evaluated, and opens with
-- trusted_schema=OFF.
DROP TABLE view_digest;
ALTER TABLE environment DROP COLUMN host;
ALTER TABLE environment DROP COLUMN cpu_model;
ALTER TABLE environment DROP COLUMN gpu_name;
ALTER TABLE build DROP COLUMN version;
ALTER TABLE build DROP COLUMN git_sha;
ALTER TABLE build DROP COLUMN git_dirty;

-- Checks are no part of how rows are stored, so they can go from the text of a table (sqlite.org/lang_altertable.html,
-- "Making Other Kinds Of Table Schema Changes"); rebuilding ten tables would copy most of a large file.
PRAGMA writable_schema=ON;
UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (json_valid(facts))', '')
 WHERE type = 'table' AND name IN ('environment', 'build', 'attempt_facts');
UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (json_valid(params) AND json_type(params) = ''object'')', '')
 WHERE type = 'table' AND name = 'case_def';
UPDATE sqlite_schema SET sql = replace(replace(sql, ' CHECK (json_valid(argv) AND json_type(argv) = ''array'')', ''),
                                       ' CHECK (json_valid(protocol))', '')
 WHERE type = 'table' AND name = 'run';
UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (detail IS NULL OR json_valid(detail))', '')
 WHERE type = 'table' AND name = 'attempt_event';
UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (counterexample IS NULL OR json_valid(counterexample))', '')
 WHERE type = 'table' AND name = 'check_result';
UPDATE sqlite_schema SET sql = replace(replace(replace(replace(sql, ' CHECK (json_valid(params))', ''),
                                                       ' CHECK (json_valid(side_a))', ''),
                                               ' CHECK (json_valid(side_b))', ''),
                                       ' CHECK (facts IS NULL OR json_valid(facts))', '')
 WHERE type = 'table' AND name = 'comparison';
UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (json_valid(owner))', '')
 WHERE type = 'table' AND name = 'run_claim';
PRAGMA writable_schema=RESET;
