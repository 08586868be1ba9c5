-- Makes a journal of schema 10 one of schema 8, for tests of homes that an older release made.
DROP INDEX catalog_reserved;
ALTER TABLE catalog DROP COLUMN reserved;
ALTER TABLE heads DROP COLUMN epoch;
UPDATE commits SET count = (SELECT coalesce(max(number), 0) FROM heads);
ALTER TABLE heads DROP COLUMN number;
PRAGMA user_version = 8;
