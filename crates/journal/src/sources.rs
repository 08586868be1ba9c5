//! What a tree is resumed from, read from its journal. A branch reads it from its origin's first batch.

use std::collections::BTreeMap;

use spinney_kernel::primitives::{BlobRef, Seq, SourceFile, SourceFiles, SourceName, TreeId};
use spinney_kernel::record::Event;

use crate::{Journal, JournalFault, pages};

/// The files that a tree was started with. Older trees have none.
///
/// # Errors
/// If the tree does not exist, or its journal cannot be read.
pub async fn started_sources(journal: &dyn Journal, tree: TreeId) -> Result<SourceFiles, JournalFault> {
    let first = journal.read(tree, Seq(0), 1).await?;
    Ok(match first.into_iter().next().and_then(|entry| entry.batch.events.into_iter().next()) {
        Some(Event::TreeStarted { sources, .. }) => sources,
        Some(_) | None => SourceFiles::default(),
    })
}

/// The same with those that were given since; the newest of each name. Reads the whole journal.
///
/// # Errors
/// As [`started_sources`]; or if they are more than a tree may have.
pub async fn newest_sources(journal: &dyn Journal, tree: TreeId) -> Result<SourceFiles, JournalFault> {
    let mut newest: BTreeMap<SourceName, BlobRef> = BTreeMap::new();
    let (mut pages, mut last) = (pages(journal, tree, Seq(0)), Seq(0));
    while let Some(page) = pages.next().await? {
        for entry in page {
            last = entry.end();
            let given = entry.batch.events.iter().flat_map(Event::sources);
            newest.extend(given.map(|SourceFile { name, blob }| (name.clone(), blob.clone())));
        }
    }
    let files = newest.into_iter().map(|(name, blob)| SourceFile { name, blob }).collect();
    let damaged = |reason: String| JournalFault::Damaged { tree, after: last.0, reason };
    SourceFiles::new(files).map_err(|error| damaged(error.to_string()))
}

/// The bytes of one of them.
///
/// # Errors
/// If they are not there, or not what the journal names.
pub async fn source_bytes(
    journal: &dyn Journal,
    tree: TreeId,
    SourceFile { name, blob }: &SourceFile,
) -> Result<Vec<u8>, JournalFault> {
    match journal.blob(blob).await? {
        Some(bytes) if bytes.len() as u64 == blob.bytes => Ok(bytes),
        Some(_) | None => {
            let reason = format!("source file `{name}` is missing");
            Err(JournalFault::Damaged { tree, after: 0, reason })
        }
    }
}
