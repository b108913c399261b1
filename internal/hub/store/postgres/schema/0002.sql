-- Events that happened again are counted; last_time is of the last time, if there was one.
ALTER TABLE memsvc.audit ADD COLUMN count bigint NOT NULL DEFAULT 1;
ALTER TABLE memsvc.audit ADD COLUMN last_time timestamptz;
ALTER TABLE memsvc.audit ADD COLUMN last_ns smallint NOT NULL DEFAULT 0;
