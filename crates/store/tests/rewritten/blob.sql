SELECT bytes FROM blobs WHERE hash = ?1
