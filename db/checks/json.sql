-- What is stored as JSON is JSON. Made as temporary triggers by the program that writes, because SQLite would let no
-- function into the schema of a file that it does not trust.
CREATE TEMP TRIGGER environment_json BEFORE INSERT ON main.environment WHEN NOT json_valid(NEW.facts)
BEGIN SELECT raise(ABORT, 'environment.facts is no JSON'); END;
CREATE TEMP TRIGGER build_json BEFORE INSERT ON main.build WHEN NOT json_valid(NEW.facts)
BEGIN SELECT raise(ABORT, 'build.facts is no JSON'); END;
CREATE TEMP TRIGGER case_def_json BEFORE INSERT ON main.case_def
WHEN CASE WHEN json_valid(NEW.params) THEN json_type(NEW.params) <> 'object' ELSE true END
BEGIN SELECT raise(ABORT, 'case_def.params is no JSON object'); END;
CREATE TEMP TRIGGER run_json BEFORE INSERT ON main.run
WHEN CASE WHEN json_valid(NEW.argv) THEN json_type(NEW.argv) <> 'array' ELSE true END OR NOT json_valid(NEW.protocol)
BEGIN SELECT raise(ABORT, 'run.argv is no JSON array, or run.protocol no JSON'); END;
CREATE TEMP TRIGGER attempt_event_json BEFORE INSERT ON main.attempt_event
WHEN NEW.detail IS NOT NULL AND NOT json_valid(NEW.detail)
BEGIN SELECT raise(ABORT, 'attempt_event.detail is no JSON'); END;
CREATE TEMP TRIGGER attempt_facts_json BEFORE INSERT ON main.attempt_facts WHEN NOT json_valid(NEW.facts)
BEGIN SELECT raise(ABORT, 'attempt_facts.facts is no JSON'); END;
CREATE TEMP TRIGGER check_result_json BEFORE INSERT ON main.check_result
WHEN NEW.counterexample IS NOT NULL AND NOT json_valid(NEW.counterexample)
BEGIN SELECT raise(ABORT, 'check_result.counterexample is no JSON'); END;
CREATE TEMP TRIGGER comparison_json BEFORE INSERT ON main.comparison
WHEN NOT json_valid(NEW.params) OR NOT json_valid(NEW.side_a) OR NOT json_valid(NEW.side_b)
     OR NEW.facts IS NOT NULL AND NOT json_valid(NEW.facts)
BEGIN SELECT raise(ABORT, 'comparison.params, side_a, side_b or facts is no JSON'); END;
CREATE TEMP TRIGGER run_claim_json BEFORE INSERT ON main.run_claim WHEN NOT json_valid(NEW.owner)
BEGIN SELECT raise(ABORT, 'run_claim.owner is no JSON'); END;
