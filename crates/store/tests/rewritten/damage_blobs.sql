UPDATE blobs SET bytes = CAST(bytes || '# changed' AS BLOB)
