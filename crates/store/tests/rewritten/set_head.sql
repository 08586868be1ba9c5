UPDATE heads SET hash = ?2 WHERE last = ?1
