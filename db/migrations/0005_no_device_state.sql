-- Schema version 5: device_state goes, to which no version ever wrote a row. What it was meant for is told with each attempt
-- (attempt_facts: device_state, clock_mhz, load_average) and shown by v_provenance.
DROP TABLE device_state;  -- its triggers go with it
