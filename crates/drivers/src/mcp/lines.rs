//! Reads messages that are lines from a server that may send anything: a line has a bound, and what is longer is not kept.

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// The longest message of a server. An image of the largest size fits in base64.
pub(super) const LINE_BYTES_MAX: usize = 12 << 20;
/// What is kept of a longer one, to find out what it answers.
const HEAD_BYTES: usize = 512;
const BUFFER_BYTES: usize = 64 << 10;

/// What a server sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// The beginning of one that is too long. The rest is read and not kept.
    TooLong {
        head: Vec<u8>,
    },
    /// More of it.
    Rest,
}

/// Lines of a stream. Waiting for one may be given up at any moment and begun again.
#[derive(Debug)]
pub(super) struct Lines<R> {
    from: BufReader<R>,
    begun: Vec<u8>,
    is_too_long: bool,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self::bounded(from, LINE_BYTES_MAX)
    }

    fn bounded(from: R, bytes_max: usize) -> Self {
        let from = BufReader::with_capacity(BUFFER_BYTES, from);
        Self { from, begun: Vec::new(), is_too_long: false, bytes_max }
    }

    /// None at the end. What has no line end by then is no message.
    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            // Nothing is consumed if this is given up.
            let read = self.from.fill_buf().await.ok().filter(|read| !read.is_empty())?;
            let end = memchr::memchr(b'\n', read);
            let count = end.map_or(read.len(), |end| end + 1);
            if self.is_too_long {
                self.from.consume(count);
                self.is_too_long = end.is_none();
                return Some(Line::Rest);
            }
            if self.begun.len() + count > self.bytes_max {
                self.begun.extend_from_slice(&read[..count.min(HEAD_BYTES)]);
                self.from.consume(count);
                self.is_too_long = end.is_none();
                let mut head = std::mem::take(&mut self.begun);
                head.truncate(HEAD_BYTES);
                return Some(Line::TooLong { head });
            }
            self.begun.extend_from_slice(&read[..count]);
            self.from.consume(count);
            if end.is_some() {
                return Some(Line::Whole(std::mem::take(&mut self.begun)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], bytes_max: usize) -> Vec<Line> {
        let mut lines = Lines::bounded(bytes, bytes_max);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn a_line_has_a_bound_and_what_follows_it_is_read() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(all(b"a\n\nbc\nd", 10).await, [whole("a\n"), whole("\n"), whole("bc\n")]);
        let long = [b"{\"id\":1,".as_slice(), &[b'x'; 200_000], b"\nafter\n"].concat();
        let lines = all(&long, 1_000).await;
        assert!(matches!(&lines[0], Line::TooLong { head } if head.starts_with(b"{\"id\":1,")));
        assert!(lines[1..lines.len() - 1].iter().all(|line| *line == Line::Rest));
        assert_eq!(lines.last(), Some(&whole("after\n")));
    }
}
