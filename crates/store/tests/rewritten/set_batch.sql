UPDATE batches SET body = ?2, hash = ?3 WHERE id = ?1
