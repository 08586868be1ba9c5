//! Files and homes of strangers: what they would send or start, that nothing leaves and nothing starts without the user's
//! word, and what the user is told.

mod answers;
mod files;
mod homes;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::test_folder::{Ended, TestFolder};

/// What the user's environment has, and no stranger may get.
const SECRETS: [(&str, &str); 5] = [
    ("OPENAI_API_KEY", "sk-open-ai-0123456789abcdef"),
    ("ANTHROPIC_API_KEY", "sk-anthropic-0123456789abcdef"),
    ("GEMINI_API_KEY", "gemini-0123456789abcdef"),
    ("AWS_SECRET_ACCESS_KEY", "aws-0123456789abcdef"),
    ("GITHUB_TOKEN", "ghp-0123456789abcdef"),
];

/// A stranger's server, and the proxy of this machine: every connection that leaves ends here.
struct Outside {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Outside {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let hears = Arc::clone(&heard);
        thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                let mut bytes = [0; 4096];
                let count = connection.read(&mut bytes).unwrap_or(0);
                hears.lock().unwrap().push(String::from_utf8_lossy(&bytes[..count]).into_owned());
                let _ = connection
                    .write_all(b"HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// The user's environment, with every way out leading here.
    fn environment(&self) -> Vec<(&'static str, String)> {
        let proxy = format!("http://{}", self.address);
        let proxies = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"];
        let secrets = SECRETS.map(|(name, value)| (name, value.to_owned()));
        secrets.into_iter().chain(proxies.map(|name| (name, proxy.clone()))).collect()
    }

    /// Runs a command of this user to its end.
    fn spinney(&self, stage: &TestFolder, args: &[&str]) -> Ended {
        let environment = self.environment();
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        stage.play_in(args, &environment).end()
    }
}

/// The secrets that a text has.
fn leaked(text: &str) -> Vec<&'static str> {
    SECRETS.into_iter().filter(|(_, secret)| text.contains(secret)).map(|(name, _)| name).collect()
}
