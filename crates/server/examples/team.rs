//! Runs a tree file whose agent is a program: `cargo run -p spinney-server --example team`. It needs `claude` in the `PATH`,
//! and Anthropic's key in the environment.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use spinney_drivers::sandbox::guard_a_box;
use spinney_host::prelude::*;
use spinney_server::programs::ProgramGateways;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // The helper of its boxes is this program again, under another name.
    if let Some(exit) = guard_a_box() {
        return Ok(exit);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/writer.yaml");
    println!("{}", block_on(run(&file))??);
    Ok(ExitCode::SUCCESS)
}

async fn run(file: &Path) -> Result<String, Box<dyn Error>> {
    let host = Host::open(".spinney").await?.with_programs(Arc::new(ProgramGateways::default()));
    // A file alone never decides which programs run.
    let allowed = ["program:claude".parse()?];
    let tree = host.start_with(&StartRequest { boxes: &allowed, ..StartRequest::new(file) }).await?;
    let result = tree.result().await?;
    host.close().await;
    Ok(format!("{}: {}", result.state, result.output))
}
