-- Makes a journal of schema 9 one of schema 8, for tests of homes that an older release made.
UPDATE commits SET count = (SELECT coalesce(max(number), 0) FROM heads);
ALTER TABLE heads DROP COLUMN number;
PRAGMA user_version = 8;
