//! The size limits of an append. Both journals check them before anything is written.

use spinney_journal::{Append, CatalogRow, JournalFault};
use spinney_kernel::primitives::limit;

pub(crate) fn check(append: &Append) -> Result<(), JournalFault> {
    at_most("the number of blobs", append.blobs.len(), limit::BLOBS_MAX)?;
    for blob in append.blobs.iter() {
        at_most("a blob in bytes", blob.len(), limit::BLOB_BYTES_MAX)?;
    }
    let bytes = append.blobs.iter().map(Vec::len).sum();
    at_most("all blobs in bytes", bytes, limit::BLOBS_BYTES_MAX)?;
    at_most("the number of catalog rows", append.catalog.len(), limit::CATALOG_ROWS_MAX)?;
    check_rows(&append.catalog)
}

pub(crate) fn check_rows(rows: &[CatalogRow]) -> Result<(), JournalFault> {
    for CatalogRow { key, value, .. } in rows {
        check_key(key)?;
        let bytes = value.as_ref().map_or(0, String::len);
        at_most("a catalog value in bytes", bytes, limit::CATALOG_VALUE_BYTES_MAX)?;
    }
    Ok(())
}

pub(crate) fn check_key(key: &str) -> Result<(), JournalFault> {
    at_most("a catalog key in bytes", key.len(), limit::CATALOG_KEY_BYTES_MAX)
}

pub(crate) fn at_most(what: &'static str, size: usize, max: usize) -> Result<(), JournalFault> {
    if size > max { Err(JournalFault::TooLarge { what, size, max }) } else { Ok(()) }
}
