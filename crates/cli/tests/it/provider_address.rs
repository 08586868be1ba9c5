//! The providers' own addresses on this machine: a proxy that serves `api.anthropic.com` and `api.openai.com` with a
//! certificate of a test authority, and forwards to a [`Provider`](crate::provider::Provider). It refuses every other
//! host.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// The file that makes a process trust these addresses, as `SSL_CERT_FILE`.
pub(crate) const AUTHORITY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/providers_authority.pem");

const HOSTS: [&str; 2] = ["api.anthropic.com:443", "api.openai.com:443"];

pub(crate) struct ProviderAddress {
    /// The value for `HTTPS_PROXY`.
    pub(crate) proxy: String,
}

impl ProviderAddress {
    /// Forwards the providers' addresses to a plain HTTP server at `url`.
    pub(crate) fn new(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let (to, acceptor) = (url.trim_start_matches("http://").to_owned(), acceptor());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((connection, _)) = listener.accept().await {
                    let (to, acceptor) = (to.clone(), acceptor.clone());
                    // The client may disconnect at any moment.
                    tokio::spawn(async move { drop(lead(connection, acceptor, &to).await) });
                }
            });
        });
        Self { proxy }
    }
}

fn acceptor() -> TlsAcceptor {
    let (certificate, key) = (include_bytes!("tls/providers.der"), include_bytes!("tls/key.der"));
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let chain = vec![CertificateDer::from(certificate.as_slice())];
    let key = PrivatePkcs8KeyDer::from(key.as_slice()).into();
    TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
}

async fn lead(mut connection: TcpStream, acceptor: TlsAcceptor, to: &str) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 16 * 1024 {
        head.push(connection.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let host = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    if !HOSTS.contains(&host) {
        return connection.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
    }
    connection.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
    let mut opened = acceptor.accept(connection).await?;
    let mut provider = TcpStream::connect(to).await?;
    copy_bidirectional(&mut opened, &mut provider).await?;
    Ok(())
}
