-- Schema version 6: what kind of fault a law has met, and whether on an input that is promised. Which kinds there are is
-- the program's matter (src/core/finding_kind.hpp): another one needs no migration. NULL: none, or nobody said.
ALTER TABLE check_result ADD COLUMN finding TEXT CHECK (finding <> '');
ALTER TABLE check_result ADD COLUMN promised INTEGER NOT NULL DEFAULT 0 CHECK (promised IN (0, 1));
