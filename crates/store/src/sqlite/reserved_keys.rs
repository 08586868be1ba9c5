//! Keys that are reserved for a tree until an append takes them: rows of the catalog that are not facts yet. One primary
//! key holds both apart from other trees.

use rusqlite::{Connection, OptionalExtension, params};
use spinney_journal::{CatalogKind, Claim, JournalFault};
use spinney_kernel::primitives::TreeId;

use super::claims::Claims;
use super::fault::from_sqlite;
use super::heads::Heads;

/// The row of a tree that a claim is valid for.
fn owned(connection: &Connection, heads: &Heads, claims: &Claims, claim: Claim) -> Result<i64, JournalFault> {
    let Claim { tree, epoch } = claim;
    let head = heads.find(connection, tree)?.ok_or(JournalFault::UnknownTree { tree })?;
    if claims.current(tree, head.epoch) == epoch { Ok(head.id) } else { Err(JournalFault::Owned { tree }) }
}

/// The tree that has a key.
pub(super) fn holder(
    connection: &Connection,
    kind: CatalogKind,
    key: &str,
) -> Result<Option<(i64, TreeId)>, JournalFault> {
    connection
        .prepare_cached(
            "SELECT id, trees.tree FROM catalog JOIN trees ON id = catalog.tree WHERE kind = ?1 AND key = ?2",
        )
        .and_then(|mut found| {
            let holder = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, TreeId::new(row.get(1)?)));
            found.query_row([kind.as_str(), key], holder).optional()
        })
        .map_err(|error| from_sqlite(connection, &error))
}

/// Reserves a key, or says that it is taken.
pub(super) fn reserve(
    connection: &Connection,
    heads: &Heads,
    claims: &Claims,
    claim: Claim,
    (kind, key): (CatalogKind, String),
) -> Result<(), JournalFault> {
    let id = owned(connection, heads, claims, claim)?;
    if let Some((_, tree)) = holder(connection, kind, &key)? {
        return Err(JournalFault::KeyTaken { kind, key, tree });
    }
    connection
        .prepare_cached("INSERT INTO catalog (kind, key, tree, value, reserved) VALUES (?1, ?2, ?3, '', 1)")
        .and_then(|mut row| row.execute(params![kind.as_str(), key, id]))
        .map(drop)
        .map_err(|error| from_sqlite(connection, &error))
}

/// Frees a key that is reserved under this claim.
pub(super) fn free(
    connection: &Connection,
    heads: &Heads,
    claims: &Claims,
    claim: Claim,
    (kind, key): (CatalogKind, String),
) -> Result<(), JournalFault> {
    let id = match owned(connection, heads, claims, claim) {
        Ok(id) => id,
        Err(JournalFault::Owned { .. } | JournalFault::UnknownTree { .. }) => return Ok(()),
        Err(fault) => return Err(fault),
    };
    connection
        .prepare_cached("DELETE FROM catalog WHERE kind = ?1 AND key = ?2 AND tree = ?3 AND reserved = 1")
        .and_then(|mut row| row.execute(params![kind.as_str(), key, id]))
        .map(drop)
        .map_err(|error| from_sqlite(connection, &error))
}

/// Whether a tree has reserved any.
pub(super) fn has_any(connection: &Connection, id: i64) -> Result<bool, JournalFault> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM catalog WHERE tree = ?1 AND reserved = 1)")
        .and_then(|mut found| found.query_row([id], |row| row.get(0)))
        .map_err(|error| from_sqlite(connection, &error))
}

/// Frees all that are reserved for a tree: no event took them.
pub(super) fn free_all(connection: &Connection, id: i64) -> Result<(), JournalFault> {
    connection
        .prepare_cached("DELETE FROM catalog WHERE tree = ?1 AND reserved = 1")
        .and_then(|mut rows| rows.execute([id]))
        .map(drop)
        .map_err(|error| from_sqlite(connection, &error))
}
