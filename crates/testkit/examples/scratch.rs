//! scratch
#[path = "../benches/bench/tree.rs"]
mod tree;
use spinney_kernel::port::journal::Durability;
use spinney_store::{Access, MemoryJournal, SqliteJournal};
use std::sync::Arc;
fn main() {
    let n: u32 = std::env::args().nth(2).unwrap().parse().unwrap();
    let rt = tree::runtime();
    let journal: Arc<dyn spinney_kernel::port::journal::Journal> =
        match std::env::args().nth(1).unwrap().as_str() {
            "mem" => Arc::new(MemoryJournal::new()),
            p => Arc::new(SqliteJournal::open(std::path::Path::new(p), Access::Write).unwrap()),
        };
    let home = tree::home(journal, tree::Plan::Turns(n));
    let t = std::time::Instant::now();
    rt.block_on(tree::run(&home, Durability::Normal));
    println!("{:?} per batch", t.elapsed() / (2 * n));
}
