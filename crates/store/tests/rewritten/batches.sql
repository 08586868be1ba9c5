SELECT b.id, t.tree, b.after, b.before, b.body FROM batches b JOIN trees t ON t.id = b.tree ORDER BY b.id
