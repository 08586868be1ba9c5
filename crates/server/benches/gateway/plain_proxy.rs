//! The reference: a reverse proxy that looks at nothing. As the gateway to a server on this machine, it has a connection
//! of its own for each request.

use std::net::SocketAddr;

use http::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(crate) struct PlainProxy {
    pub(crate) address: SocketAddr,
    serving: JoinHandle<()>,
}

impl PlainProxy {
    pub(crate) async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, upstream));
            }
        });
        Self { address, serving }
    }
}

impl Drop for PlainProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(stream: TcpStream, upstream: SocketAddr) {
    stream.set_nodelay(true).unwrap();
    let service = service_fn(|request: Request<Incoming>| async move {
        let stream = TcpStream::connect(upstream).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut send, connection) = client::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        send.send_request(request).await
    });
    let _closed = server::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
