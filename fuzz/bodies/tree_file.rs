//! Any bytes as a tree file in each format: reading all of it and checking it must not panic, and must agree with
//! reading it up to the first error.

use spinney_kernel::primitives::Time;
use spinney_testkit::spinney::tree_file::{NoCatalog, TreeFile, WorstCase};

pub(crate) fn run(bytes: &[u8]) {
    let Some((format, bytes)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let name = ["t.yaml", "t.json", "t.toml"][usize::from(*format) % 3];
    match TreeFile::parse_whole(name, text, &NoCatalog) {
        Ok(file) => {
            let _ = file.check(&file.definition);
            let _ = WorstCase::new(&file.definition, Time(0));
            let _ = file.with_inputs(&[], &|_| None);
        }
        Err(all) => {
            let first = TreeFile::parse(name, text).expect_err("it has errors");
            assert!(all.errors.contains(&first), "{first} is not among {all}");
        }
    }
}
