//! Bytes from one side of a connection to the other, counted, with one small buffer in each direction.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// What each direction of a connection keeps in memory.
pub(super) const BUFFER_BYTES: usize = 32 << 10;

/// Copies until the end, and tells the other side of the end.
pub(super) async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        write(to, &buffer[..read], count).await?;
    }
}

/// Copies this many bytes and no more.
pub(super) async fn copy_exactly(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    bytes: u64,
    count: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES.min(usize::try_from(bytes).unwrap_or(BUFFER_BYTES))];
    let mut left = bytes;
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = from.read(&mut buffer[..most]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write(to, &buffer[..read], count).await?;
        left -= read as u64;
    }
    Ok(())
}

pub(super) async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    count: &AtomicU64,
) -> io::Result<()> {
    to.write_all(bytes).await?;
    count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    Ok(())
}
