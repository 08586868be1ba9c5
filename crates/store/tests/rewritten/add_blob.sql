INSERT OR IGNORE INTO blobs (hash, bytes) VALUES (?1, ?2)
