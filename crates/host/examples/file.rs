//! Runs a tree file with the models that it names, and with a tool of this program: `cargo run -p spinney-host --example
//! file`. Without a key of the provider, its answers come from the script beside the file.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use spinney_host::prelude::*;
use std::{error::Error, path::Path, sync::Arc};

pub(crate) async fn run(host: Host, file: &Path) -> Result<String, Box<dyn Error>> {
    let station = |_: RawCall| Ok::<_, String>("21 degrees and dry");
    let weather = FunctionTool::sync(station).described("Says what the weather in Bonn is like.");
    let host = host.with_tool("weather".parse()?, Arc::new(weather));
    let tree = host.start(file).await?;
    let result = tree.result().await?;
    host.close().await;
    Ok(format!("{}: {}", result.state, result.output))
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/weather.yaml");
    println!("{}", block_on(async { run(Host::open(".spinney").await?, &file).await })??);
    Ok(())
}
