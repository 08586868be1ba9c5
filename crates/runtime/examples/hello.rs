//! The shortest program with a tree: one dependency, `spinney`. `cargo run -p spinney --example hello`
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use spinney::prelude::*;
use std::{error::Error, sync::Arc};

fn main() -> Result<(), Box<dyn Error>> {
    let model = FunctionModel::new(|_attempt| async { Ok(ModelAnswer::text("Good morning.")) });
    let drivers = Drivers::new().with_model("greeter".parse()?, Arc::new(model));
    let file = TreeFile::parse("hello.yaml", include_str!("hello.yaml"))?;
    spinney::block_on(async {
        let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
        let tree = home.start(file.definition).await?;
        tree.ended().await;
        println!("{}", tree.snapshot().await?.end.ok_or("the tree was stopped")?.shown.text);
        Ok(())
    })?
}
