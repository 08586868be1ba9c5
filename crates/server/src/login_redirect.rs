//! Where a browser comes back to after a login: one port of this machine, for one answer.

use std::io;
use std::time::Duration;

use spinney_drivers::mcp::{LOGIN_PATH, LoginAnswer, login_answer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a browser may take to send one.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for a browser.
pub struct LoginRedirect {
    listener: TcpListener,
    address: String,
}

impl LoginRedirect {
    /// # Errors
    /// If there is no port.
    pub async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}{LOGIN_PATH}", listener.local_addr()?);
        Ok(Self { listener, address })
    }

    /// Where the browser is sent back to.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The answer to the login with this state. Everything else that comes here is told so.
    ///
    /// # Errors
    /// What the issuer said instead of a code.
    pub async fn answer(self, state: &str) -> Result<LoginAnswer, String> {
        loop {
            let accepted = self.listener.accept().await;
            let (mut browser, _) =
                accepted.map_err(|error| format!("the browser cannot come back: {error}"))?;
            let path = timeout(HEAD_TIMEOUT, path(&mut browser)).await.ok().flatten();
            let answer = path.and_then(|path| login_answer(&path, state));
            let (status, text) = match &answer {
                Some(Ok(_)) => ("200 OK", "You are logged in, and can close this page."),
                Some(Err(_)) => ("200 OK", "There is no login. You can close this page."),
                None => ("404 Not Found", "There is nothing here."),
            };
            let length = text.len();
            let head = "content-type: text/plain; charset=utf-8\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close";
            let response = format!("HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {length}\r\n\r\n{text}");
            // The page is for the person; the login does not need it.
            let _ = timeout(HEAD_TIMEOUT, browser.write_all(response.as_bytes())).await;
            if let Some(answer) = answer {
                return answer;
            }
        }
    }
}

/// The path of a request, once its head is complete.
async fn path(browser: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut bytes = [0; 4_096];
        let read = browser.read(&mut bytes).await.ok().filter(|read| *read > 0)?;
        head.extend_from_slice(&bytes[..read]);
        if head.len() > HEAD_BYTES_MAX {
            return None;
        }
    }
    let line = String::from_utf8(head).ok()?;
    let path = line.strip_prefix("GET ")?.split(' ').next()?;
    path.starts_with('/').then(|| path.to_owned())
}
