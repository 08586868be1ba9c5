//! A server on the loopback that speaks TLS and HTTP/2, as providers do. Its certificates are of an authority that only
//! `tests/it/tls/authority.pem` knows; the key belongs to these tests and is worth nothing elsewhere.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use h2::server::SendResponse;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// The file that makes a process trust these servers, as `SSL_CERT_FILE`.
pub(crate) const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/authority.pem");

/// Whom its certificate is for.
#[derive(Clone, Copy)]
pub(crate) enum Certificate {
    /// 127.0.0.1.
    Here,
    Elsewhere,
}

/// What it answers to each request.
#[derive(Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) media: &'static str,
    pub(crate) body: String,
}

pub(crate) struct TlsUpstream {
    pub(crate) port: u16,
    headers: Arc<Mutex<Vec<String>>>,
}

impl TlsUpstream {
    pub(crate) fn new(certificate: Certificate, response: Response) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let headers = Arc::<Mutex<Vec<String>>>::default();
        let (acceptor, seen) = (acceptor(certificate), Arc::clone(&headers));
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((connection, _)) = listener.accept().await {
                    tokio::spawn(serve(connection, acceptor.clone(), response.clone(), Arc::clone(&seen)));
                }
            });
        });
        Self { port, headers }
    }

    /// The headers of each request.
    pub(crate) fn headers(&self) -> Vec<String> {
        self.headers.lock().unwrap().clone()
    }
}

fn acceptor(certificate: Certificate) -> TlsAcceptor {
    let certificate: &[u8] = match certificate {
        Certificate::Here => include_bytes!("tls/here.der"),
        Certificate::Elsewhere => include_bytes!("tls/elsewhere.der"),
    };
    let key: &[u8] = include_bytes!("tls/key.der");
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let (chain, key) = (vec![CertificateDer::from(certificate)], PrivatePkcs8KeyDer::from(key).into());
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// A client that does not trust us disconnects in the middle of this.
async fn serve(
    connection: TcpStream,
    acceptor: TlsAcceptor,
    response: Response,
    seen: Arc<Mutex<Vec<String>>>,
) {
    let Ok(connection) = acceptor.accept(connection).await else { return };
    let Ok(mut requests) = h2::server::handshake(connection).await else { return };
    while let Some(Ok((request, respond))) = requests.accept().await {
        seen.lock().unwrap().push(format!("{:?}", request.headers()));
        let (head, mut body) = request.into_parts();
        let (response, headers) = (response.clone(), head.headers);
        tokio::spawn(async move {
            let key = headers.get("authorization").and_then(|key| key.to_str().ok()).unwrap_or_default();
            while let Some(Ok(chunk)) = body.data().await {
                let _closed = body.flow_control().release_capacity(chunk.len());
            }
            answer(respond, &response, key);
        });
    }
}

/// `{key}` in a body stands for what the request was authorised with.
fn answer(mut respond: SendResponse<bytes::Bytes>, response: &Response, key: &str) {
    let head = http::Response::builder().status(response.status).header("content-type", response.media);
    let mut body = respond.send_response(head.body(()).unwrap(), false).unwrap();
    body.send_data(response.body.replace("{key}", key).into(), true).unwrap();
}
