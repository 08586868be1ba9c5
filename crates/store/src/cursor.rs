//! The content of a cursor in both stores: the number of the next tree, in the order of creation.

use spinney_journal::{HeadCursor, JournalFault};

pub(crate) fn to(number: u64) -> HeadCursor {
    HeadCursor::from_bytes(&number.to_be_bytes())
}

pub(crate) fn number(cursor: &HeadCursor) -> Result<u64, JournalFault> {
    match cursor.bytes() {
        [] => Ok(0),
        bytes => bytes.try_into().map(u64::from_be_bytes).map_err(|_| JournalFault::UnknownCursor),
    }
}
