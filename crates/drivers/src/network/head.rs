//! What a request to the proxy asks for. Only the plainest form of each is read: what two programs could read in two ways
//! is refused, so that nothing behind the proxy sees another request than the one that was checked.

use std::io;

use spinney_kernel::primitives::RemoteHost;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes of a request before its body, and the lines in them.
pub(super) const HEAD_BYTES_MAX: usize = 32 << 10;
const HEADERS_MAX: usize = 100;
const METHOD_BYTES_MAX: usize = 16;
/// Longer bodies have more digits than any server reads.
const LENGTH_DIGITS_MAX: usize = 15;

/// A request that can be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Tunnel { host: RemoteHost, port: u16 },
    Plain { host: RemoteHost, port: u16, request: Vec<u8>, body_bytes: u64 },
}

/// A request that is refused whatever is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadHead {
    pub(super) status: &'static str,
    pub(super) problem: &'static str,
}

/// The bytes of a head with its empty line, and those after it that have come with it.
pub(super) async fn read_head(
    from: &mut (impl AsyncRead + Unpin),
) -> io::Result<Result<(Vec<u8>, Vec<u8>), BadHead>> {
    let mut head = Vec::with_capacity(1_024);
    loop {
        let searched = head.len().saturating_sub(3);
        let mut piece = [0; 4_096];
        let count = from.read(&mut piece).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&piece[..count]);
        if let Some(at) = head[searched..].windows(4).position(|end| end == b"\r\n\r\n") {
            let rest = head.split_off(searched + at + 4);
            return Ok(Ok((head, rest)));
        }
        // A client that ends lines like this would wait forever.
        if head[searched..].windows(2).any(|end| end == b"\n\n") {
            return Ok(Err(bad("lines end with CR and LF")));
        }
        if head.len() > HEAD_BYTES_MAX {
            let status = "431 Request Header Fields Too Large";
            return Ok(Err(BadHead { status, problem: "its head is too long" }));
        }
    }
}

pub(super) fn parse(head: &[u8]) -> Result<Head, BadHead> {
    let text = head.strip_suffix(b"\r\n\r\n").ok_or(bad("its head has no end"))?;
    let mut lines = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        lines.push(line.strip_suffix(b"\r").unwrap_or(line));
    }
    let line_feeds = text.iter().filter(|byte| **byte == b'\n').count();
    let ends = text.windows(2).filter(|end| end == b"\r\n").count();
    if ends != line_feeds || lines.iter().any(|line| line.iter().any(|byte| is_control(*byte))) {
        return Err(bad("lines end with CR and LF, and have no control characters"));
    }
    let (first, lines) = lines.split_first().ok_or(bad("it is empty"))?;
    let first = std::str::from_utf8(first).map_err(|_| bad("its first line is not ASCII"))?;
    let words: Vec<&str> = first.split(' ').collect();
    let [method, target, version] = words.as_slice() else {
        return Err(bad("its first line is not a method, a target and a version with one space between"));
    };
    if method.is_empty()
        || method.len() > METHOD_BYTES_MAX
        || !method.bytes().all(|byte| byte.is_ascii_uppercase())
    {
        return Err(bad("its method is not one"));
    }
    let needs_host = match *version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ => {
            let status = "505 HTTP Version Not Supported";
            return Err(BadHead { status, problem: "only HTTP/1.1 and HTTP/1.0 are spoken here" });
        }
    };
    let headers = Headers::parse(lines)?;
    if *method == "CONNECT" {
        let (host, port) = authority(target, None)?;
        headers.check_host((&host, port), None, needs_host)?;
        if headers.length.is_some_and(|length| length > 0) {
            return Err(bad("CONNECT has no body"));
        }
        return Ok(Head::Tunnel { host, port });
    }
    let Some(rest) = target.strip_prefix("http://") else {
        return Err(bad("this is a proxy: ask for `http://HOST/PATH`, or CONNECT to `HOST:443` for `https`"));
    };
    let (name, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains('#') {
        return Err(bad("its path has characters that a path does not have"));
    }
    let (host, port) = authority(name, Some(80))?;
    headers.check_host((&host, port), Some(80), needs_host)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let at = if port == 80 { host.to_string() } else { format!("{host}:{port}") };
    let mut request = format!("{method} {slash}{path} {version}\r\nHost: {at}\r\n").into_bytes();
    for (name, value) in headers.kept() {
        request.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    if let Some(length) = headers.length {
        request.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    request.extend_from_slice(b"Connection: close\r\n\r\n");
    Ok(Head::Plain { host, port, request, body_bytes: headers.length.unwrap_or(0) })
}

struct Headers<'a> {
    all: Vec<(String, &'a [u8])>,
    length: Option<u64>,
}

/// Headers between a client and a proxy, and those that we write ourselves.
const OURS: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl<'a> Headers<'a> {
    fn parse(lines: &[&'a [u8]]) -> Result<Self, BadHead> {
        if lines.len() > HEADERS_MAX {
            let status = "431 Request Header Fields Too Large";
            return Err(BadHead { status, problem: "it has too many headers" });
        }
        let mut all = Vec::with_capacity(lines.len());
        for line in lines {
            let colon = line.iter().position(|byte| *byte == b':').ok_or(bad("a header has no colon"))?;
            let (name, value) = (&line[..colon], &line[colon + 1..]);
            // A line that continues another one begins with a space, which no name has.
            if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
                return Err(bad("the name of a header is not one"));
            }
            all.push((String::from_utf8_lossy(name).to_ascii_lowercase(), value.trim_ascii()));
        }
        let mut headers = Self { all, length: None };
        if headers.values("transfer-encoding").next().is_some() {
            if headers.values("content-length").next().is_some() {
                return Err(bad("it has two lengths"));
            }
            let problem = "bodies need a `Content-Length` here, or `https`";
            return Err(BadHead { status: "411 Length Required", problem });
        }
        headers.length = headers.one("content-length")?.map(length).transpose()?;
        Ok(headers)
    }

    fn values<'b>(&'b self, wanted: &'b str) -> impl Iterator<Item = &'a [u8]> + 'b {
        self.all.iter().filter(move |(name, _)| name == wanted).map(|(_, value)| *value)
    }

    fn one(&self, name: &str) -> Result<Option<&'a [u8]>, BadHead> {
        let mut values = self.values(name);
        let first = values.next();
        if values.next().is_some() { Err(bad("a header is there twice")) } else { Ok(first) }
    }

    fn check_host(
        &self,
        target: (&RemoteHost, u16),
        port: Option<u16>,
        is_needed: bool,
    ) -> Result<(), BadHead> {
        let Some(value) = self.one("host")? else {
            return if is_needed { Err(bad("it has no `Host`")) } else { Ok(()) };
        };
        let value = std::str::from_utf8(value).map_err(|_| bad("its `Host` is not ASCII"))?;
        let (host, port) = authority(value, Some(port.unwrap_or(target.1)))?;
        if (&host, port) == target { Ok(()) } else { Err(bad("its `Host` is not its target")) }
    }

    /// What the host gets.
    fn kept(&self) -> impl Iterator<Item = (&str, &'a [u8])> {
        let named: Vec<String> = self
            .values("connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
            .collect();
        self.all.iter().filter_map(move |(name, value)| {
            let is_ours = OURS.contains(&name.as_str()) || name.starts_with("proxy-") || named.contains(name);
            (!is_ours).then_some((name.as_str(), *value))
        })
    }
}

/// `HOST` or `HOST:PORT`; without a port only where one is given.
fn authority(text: &str, port: Option<u16>) -> Result<(RemoteHost, u16), BadHead> {
    let problem = bad("its target is not a host: a name in ASCII without a dot at its end, or an address");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let is_plain = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
            (host, port.parse().ok().filter(|_| is_plain).ok_or(bad("its port is not one"))?)
        }
        _ => (text, port.ok_or(bad("its target has no port"))?),
    };
    Ok((host.parse().map_err(|_| problem)?, port))
}

fn length(value: &[u8]) -> Result<u64, BadHead> {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let is_plain =
        !text.is_empty() && text.len() <= LENGTH_DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain).ok_or(bad("its `Content-Length` is not a number"))
}

const fn bad(problem: &'static str) -> BadHead {
    BadHead { status: "400 Bad Request", problem }
}

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// A byte of the names of headers and methods.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(head: &str) -> (String, String) {
        match parse(head.as_bytes()).unwrap_or_else(|bad| panic!("{head:?}: {bad:?}")) {
            Head::Plain { host, port, request, .. } => {
                (format!("{host}:{port}"), String::from_utf8(request).unwrap())
            }
            Head::Tunnel { .. } => panic!("{head:?}"),
        }
    }

    #[test]
    fn a_host_gets_the_request_without_what_is_between_client_and_proxy() {
        let (to, request) = plain(concat!(
            "POST http://A.org:8080/x?y=1 HTTP/1.1\r\nHost: a.org:8080\r\nAccept: */*\r\nProxy-Authorization: Basic eA==\r\n",
            "Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Secret, Upgrade\r\nX-Secret: 1\r\nUpgrade: websocket\r\nTE: trailers\r\nContent-Length: 3\r\n\r\n"
        ));
        assert_eq!(to, "a.org:8080");
        assert_eq!(
            request,
            "POST /x?y=1 HTTP/1.1\r\nHost: a.org:8080\r\naccept: */*\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"
        );
        let (_, request) = plain("GET http://a.org?q HTTP/1.0\r\n\r\n");
        assert_eq!(request, "GET /?q HTTP/1.0\r\nHost: a.org\r\nConnection: close\r\n\r\n");
        for head in [
            "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org:443\r\n\r\n",
            "CONNECT A.org:443 HTTP/1.1\r\nHost: a.ORG\r\nUser-Agent: x\r\n\r\n",
            "CONNECT a.org:443 HTTP/1.0\r\n\r\n",
        ] {
            let host = "a.org".parse().unwrap();
            assert_eq!(parse(head.as_bytes()), Ok(Head::Tunnel { host, port: 443 }), "{head:?}");
        }
    }

    /// G26 (requests): what could be read as another request is refused.
    #[test]
    fn g26_requests_that_two_programs_could_read_differently_are_refused() {
        let with = |line: &str| format!("GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\n{line}\r\n\r\n");
        let mut heads: Vec<String> = [
            "Content-Length: 1\r\nContent-Length: 1",
            "Content-Length: 1\r\nContent-Length: 2",
            "Content-Length: 1, 1",
            "Content-Length: +1",
            "Content-Length: 0x1",
            "Content-Length:",
            "Content-Length: 9999999999999999",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked",
            "Transfer-Encoding: identity",
            "Transfer-Encoding : chunked",
            "X: 1\r\n folded",
            "X: 1\r\n\tfolded",
            "X: 1\nEvil: 1",
            "X: 1\rEvil: 1",
            "X: \u{0}",
            "X: \u{1b}",
            "X",
            ": x",
            "X Y: 1",
            "X\u{e9}: 1",
            "Host: a.org",
            "Host: b.org",
            "hOST: b.org",
        ]
        .map(with)
        .into();
        let lines = [
            "GET http://user@a.org/ HTTP/1.1\r\nHost: a.org",
            "GET http://a.org@b.org/ HTTP/1.1\r\nHost: b.org",
            "GET http://a.org/#f HTTP/1.1\r\nHost: a.org",
            "GET http://a.org#@b.org/ HTTP/1.1\r\nHost: a.org",
            "GET http://a%2eorg/ HTTP/1.1\r\nHost: a%2eorg",
            "GET http://a.org%00.b.org/ HTTP/1.1\r\nHost: a.org",
            "GET http://a.org./ HTTP/1.1\r\nHost: a.org.",
            "GET http://b\u{fc}cher.org/ HTTP/1.1\r\nHost: b\u{fc}cher.org",
            "GET http://a\u{3002}org/ HTTP/1.1\r\nHost: a.org",
            "GET http://a.org\\@b.org/ HTTP/1.1\r\nHost: a.org",
            "GET http://a.org:/ HTTP/1.1\r\nHost: a.org",
            "GET http://a.org:080/ HTTP/1.1\r\nHost: a.org",
            "GET http://a.org:80:80/ HTTP/1.1\r\nHost: a.org",
            "GET http://127.1/ HTTP/1.1\r\nHost: 127.1",
            "GET http://0x7f000001/ HTTP/1.1\r\nHost: 0x7f000001",
            "GET http://2130706433/ HTTP/1.1\r\nHost: 2130706433",
            "GET http://[::1%25lo]/ HTTP/1.1\r\nHost: [::1]",
            "GET http:///etc/passwd HTTP/1.1\r\nHost: a.org",
            "GET http://a.org/ HTTP/1.1\r\nHost: a.org:81",
            "GET http://a.org/ HTTP/1.1\r\nHost: b.org",
            "GET http://a.org/ HTTP/1.1\r\nAccept: */*",
            "GET http://a.org/ HTTP/1.1\r\nHost:",
            "GET http://a.org/ HTTP/1.1",
            "GET http://a.org/ HTTP/1.2\r\nHost: a.org",
            "GET http://a.org/ HTTP/2.0\r\nHost: a.org",
            "GET http://a.org/ http/1.1\r\nHost: a.org",
            "GET http://a.org/",
            "GET  http://a.org/ HTTP/1.1\r\nHost: a.org",
            "GET http://a.org/ x HTTP/1.1\r\nHost: a.org",
            "GET\thttp://a.org/ HTTP/1.1\r\nHost: a.org",
            "get http://a.org/ HTTP/1.1\r\nHost: a.org",
            "GET / HTTP/1.1\r\nHost: a.org",
            "GET //a.org/ HTTP/1.1\r\nHost: a.org",
            "GET https://a.org/ HTTP/1.1\r\nHost: a.org",
            "GET HTTP://a.org/ HTTP/1.1\r\nHost: a.org",
            "GET ftp://a.org/ HTTP/1.1\r\nHost: a.org",
            "GET file:///etc/passwd HTTP/1.1\r\nHost: a.org",
            "OPTIONS * HTTP/1.1\r\nHost: a.org",
            "PRI * HTTP/2.0",
            "CONNECT a.org HTTP/1.1\r\nHost: a.org",
            "CONNECT a.org:0 HTTP/1.1\r\nHost: a.org",
            "CONNECT a.org:65536 HTTP/1.1\r\nHost: a.org",
            "CONNECT a.org:443/ HTTP/1.1\r\nHost: a.org",
            "CONNECT http://a.org:443 HTTP/1.1\r\nHost: a.org:443",
            "CONNECT u@a.org:443 HTTP/1.1\r\nHost: a.org:443",
            "CONNECT a.org:443 HTTP/1.1\r\nHost: b.org:443",
            "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org:80",
            "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org\r\nContent-Length: 5",
            "CONNECT ::1:443 HTTP/1.1\r\nHost: a.org",
            "CONNECT a.org.:443 HTTP/1.1\r\nHost: a.org",
            "",
        ];
        heads.extend(lines.map(|line| format!("{line}\r\n\r\n")));
        for head in &heads {
            assert!(parse(head.as_bytes()).is_err(), "{head:?} is {:?}", parse(head.as_bytes()));
        }
        let many = format!("GET http://a.org/ HTTP/1.1\r\nHost: a.org\r\n{}\r\n", "X: 1\r\n".repeat(101));
        assert_eq!(parse(many.as_bytes()).unwrap_err().status, "431 Request Header Fields Too Large");
    }

    #[tokio::test]
    async fn a_head_is_read_to_its_end_and_no_further_than_its_bound() {
        let mut whole: &[u8] = b"GET / HTTP/1.1\r\nA: b\r\n\r\nrest";
        let (head, rest) = read_head(&mut whole).await.unwrap().unwrap();
        assert_eq!(
            (head.as_slice(), rest.as_slice()),
            (&b"GET / HTTP/1.1\r\nA: b\r\n\r\n"[..], &b"rest"[..])
        );
        let endless = vec![b'a'; 1 << 20];
        assert!(read_head(&mut endless.as_slice()).await.unwrap().is_err());
        assert!(read_head(&mut &b"GET / HTTP/1.1\nHost: a\n\n"[..]).await.unwrap().is_err());
        assert!(read_head(&mut &b"GET / HT"[..]).await.is_err());
    }
}
