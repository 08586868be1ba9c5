//! Runs a tree file whose agents are programs, such as `examples/team.yaml`: `cargo run -p spinney-server --example team
//! FILE program:claude program:codex`. What follows the file is what its user allows.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::env::args;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use spinney_drivers::sandbox::guard_a_box;
use spinney_host::prelude::*;
use spinney_host::user::box_allowance::BoxAllowance;
use spinney_server::programs::ProgramGateways;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // The helper of its boxes is this program again, under another name.
    if let Some(exit) = guard_a_box() {
        return Ok(exit);
    }
    let mut words = args().skip(1);
    let file = words.next().ok_or("name a tree file")?;
    let allowed = words.map(|word| word.parse()).collect::<Result<Vec<BoxAllowance>, _>>()?;
    println!("{}", block_on(run(Path::new(&file), &allowed))??);
    Ok(ExitCode::SUCCESS)
}

async fn run(file: &Path, allowed: &[BoxAllowance]) -> Result<String, Box<dyn Error>> {
    let host = Host::open(".spinney").await?.with_programs(Arc::new(ProgramGateways::default()));
    let tree = host.start_with(&StartRequest { boxes: allowed, ..StartRequest::new(file) }).await?;
    let result = tree.result().await?;
    host.close().await;
    Ok(format!("{}: {}", result.state, result.output))
}
