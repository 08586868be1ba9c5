//! The side that steers: reaches the process that has a home open, or opens the home itself if none has.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use spinney::{Drivers, Home};
use spinney_kernel::Request;
use spinney_kernel::id::TreeId;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::address::Address;
use super::server::apply;
use super::{Answer, Ask, EXCHANGE_MS_MAX, LINE_BYTES_MAX};
use crate::hint::command;
use crate::place;

/// How often a process that has the home open but does not answer is tried: it may be starting or ending.
const TRIES_MAX: u32 = 40;
/// The pause between two tries.
const TRY_MS: u64 = 50;

/// Has something done that a person asks of a tree, by whoever has its home open.
pub(crate) async fn ask(home: &Path, tree: TreeId, request: Request) -> Result<Answer> {
    let ask = Ask::Do { tree, request: Box::new(request.clone()) };
    let mut tries = 0;
    loop {
        if let Some(journal) = place::write_if_free(home)? {
            let home = Home::open(Arc::new(journal), Drivers::new());
            return Ok(apply(&home, tree, request).await);
        }
        match exchange(home, &ask).await {
            Ok(answer) => return Ok(answer),
            Err(Unreached::Lost(error)) => return Err(error),
            Err(Unreached::Closed(_)) if tries < TRIES_MAX => tries += 1,
            Err(Unreached::Closed(error)) => {
                let why = "a process has this home open and takes no requests";
                return Err(error).with_context(|| format!("{why}: {}", home.display()));
            }
        }
        sleep(Duration::from_millis(TRY_MS)).await;
    }
}

/// The trees that a process runs in a home right now; none if no process answers.
pub(crate) async fn running(home: &Path) -> Vec<TreeId> {
    match exchange(home, &Ask::Running).await {
        Ok(Answer::Running { trees }) => trees,
        Ok(Answer::Done { .. } | Answer::Refused { .. } | Answer::Failed { .. }) | Err(_) => Vec::new(),
    }
}

/// Why there is no answer.
enum Unreached {
    /// Nobody listens: nothing was asked.
    Closed(io::Error),
    /// It was asked, and nobody knows what came of it.
    Lost(anyhow::Error),
}

async fn exchange(home: &Path, ask: &Ask) -> Result<Answer, Unreached> {
    let address = Address::of(home).map_err(Unreached::Closed)?;
    let stream = UnixStream::connect(address.path()).await.map_err(Unreached::Closed)?;
    let talk = async {
        let mut line = serde_json::to_vec(ask)?;
        line.push(b'\n');
        if line.len() > LINE_BYTES_MAX {
            bail!("the request has {} bytes and the limit is {LINE_BYTES_MAX}: shorten it", line.len());
        }
        let (from, mut to) = stream.into_split();
        to.write_all(&line).await?;
        let mut told = Vec::new();
        BufReader::new(from.take(LINE_BYTES_MAX as u64)).read_until(b'\n', &mut told).await?;
        if told.is_empty() {
            let ps = command(home, "ps");
            bail!("the process that has this home open went away before it answered: look with `{ps}`");
        }
        Ok(serde_json::from_slice(&told)?)
    };
    match timeout(Duration::from_millis(EXCHANGE_MS_MAX), talk).await {
        Ok(answered) => answered.map_err(Unreached::Lost),
        Err(_) => {
            let seconds = EXCHANGE_MS_MAX / 1_000;
            let ps = command(home, "ps");
            Err(Unreached::Lost(anyhow::anyhow!("no answer after {seconds} seconds: look with `{ps}`")))
        }
    }
}
