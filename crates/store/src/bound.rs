//! What an append may hold. Both journals check it before anything is written.

use spinney_kernel::limit;
use spinney_kernel::port::catalog::CatalogRow;
use spinney_kernel::port::journal::{Append, JournalFault};

/// Refuses an append above a bound.
pub(crate) fn check(append: &Append) -> Result<(), JournalFault> {
    at_most("number of catalog rows", append.catalog.len(), limit::CATALOG_ROWS_MAX)?;
    check_rows(&append.catalog)
}

/// Refuses rows of the catalog above a bound.
pub(crate) fn check_rows(rows: &[CatalogRow]) -> Result<(), JournalFault> {
    for CatalogRow { key, value, .. } in rows {
        at_most("catalog key in bytes", key.len(), limit::CATALOG_KEY_BYTES_MAX)?;
        let bytes = value.as_ref().map_or(0, String::len);
        at_most("catalog value in bytes", bytes, limit::CATALOG_VALUE_BYTES_MAX)?;
    }
    Ok(())
}

fn at_most(what: &'static str, size: usize, max: usize) -> Result<(), JournalFault> {
    if size > max { Err(JournalFault::TooLarge { what, size, max }) } else { Ok(()) }
}
