//! The name that a TLS client asks a server for, as far as it is visible: what is encrypted below it is not.

use spinney_kernel::primitives::RemoteHost;

use super::head::is_token;

/// The longest hello that is waited for: with keys of new algorithms they have about two thousand bytes.
const HELLO_BYTES_MAX: usize = 16 << 10;
/// Bytes of the records around it, however small their parts of it are.
pub(super) const FIRST_BYTES_MAX: usize = HELLO_BYTES_MAX * 2;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: usize = 0;
const HOST_NAME: u8 = 0;
const RANDOM_BYTES: usize = 32;

/// What the first bytes of a tunnel are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FirstBytes {
    /// More are needed.
    Incomplete,
    /// HTTP that is not encrypted, whose host nothing would check.
    PlainHttp,
    /// Before the client's own bytes it says for whom they are: the host is another one then, and what follows is unseen.
    ProxyPrefix,
    Other,
    TlsHello {
        name: Option<RemoteHost>,
    },
    /// It begins like TLS and is not.
    Broken(&'static str),
}

/// How requests begin that are not encrypted; HTTP/2 with its preface.
const METHODS: [&[u8]; 9] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE ", b"PRI "];

const HTTP: &[u8] = b"HTTP/";
/// How the PROXY protocol begins, in its two versions.
const PROXY_PREFIXES: [&[u8]; 2] = [b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"];

impl FirstBytes {
    pub(super) fn new(bytes: &[u8]) -> Self {
        match bytes {
            [] => Self::Incomplete,
            [HANDSHAKE, ..] => match hello(bytes) {
                Ok(Some(name)) => Self::TlsHello { name },
                Ok(None) if bytes.len() < FIRST_BYTES_MAX => Self::Incomplete,
                Ok(None) => Self::Broken("its TLS hello is too long"),
                Err(problem) => Self::Broken(problem),
            },
            _ => match proxy_prefix(bytes) {
                Some(prefix) => prefix,
                None => unencrypted(bytes),
            },
        }
    }
}

/// A prefix of the PROXY protocol, or bytes that may become one.
fn proxy_prefix(bytes: &[u8]) -> Option<FirstBytes> {
    let begins = |prefix: &&[u8]| bytes.starts_with(prefix);
    let may_begin = |prefix: &&[u8]| prefix.starts_with(bytes);
    if PROXY_PREFIXES.iter().any(begins) {
        Some(FirstBytes::ProxyPrefix)
    } else {
        PROXY_PREFIXES.iter().any(may_begin).then_some(FirstBytes::Incomplete)
    }
}

/// Whether bytes that are not TLS are HTTP. Servers skip empty lines before a request and pass on methods that they do
/// not know, so a first line that could be one of a request is read to its end.
fn unencrypted(bytes: &[u8]) -> FirstBytes {
    let line = &bytes[bytes.iter().take_while(|byte| is_space(**byte)).count()..];
    if METHODS.iter().any(|method| line.starts_with(method)) {
        return FirstBytes::PlainHttp;
    }
    let token = line.iter().take_while(|byte| is_token(**byte)).count();
    let end = line.iter().position(|byte| *byte == b'\n');
    match line.get(token) {
        // It may become one.
        None => {}
        Some(byte) if token > 0 && is_space(*byte) && *byte != b'\n' => match end {
            Some(end) if is_request_line(&line[..end]) => return FirstBytes::PlainHttp,
            Some(_) => return FirstBytes::Other,
            None => {}
        },
        Some(_) => return FirstBytes::Other,
    }
    if bytes.len() < FIRST_BYTES_MAX {
        FirstBytes::Incomplete
    } else {
        FirstBytes::Broken("its first line is too long")
    }
}

/// Everything that some server takes for white space, in Latin-1.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0x1c..=b' ' | 0x85 | 0xa0)
}

/// Whether a line with a word at its beginning names a version of HTTP.
fn is_request_line(line: &[u8]) -> bool {
    line.windows(HTTP.len()).any(|word| word.eq_ignore_ascii_case(HTTP))
}

/// The name in a hello; none if the hello is not whole yet.
fn hello(records: &[u8]) -> Result<Option<Option<RemoteHost>>, &'static str> {
    let mut message = Vec::new();
    let mut records = Reader(records);
    while let Some(head) = records.take(5) {
        if head[0] != HANDSHAKE || head[1] != 3 {
            return Err("its TLS hello is interrupted");
        }
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if length == 0 || length > HELLO_BYTES_MAX {
            return Err("its TLS record has a wrong length");
        }
        let is_whole = records.0.len() >= length;
        let part = records.0.len().min(length);
        message.extend_from_slice(records.take(part).unwrap_or_default());
        if let Some(body) = whole(&message)? {
            return name(body).ok_or("its TLS hello is not one")?.map(Some);
        }
        if !is_whole {
            break;
        }
    }
    Ok(None)
}

/// The body of a message that begins here, if all of it is there.
fn whole(message: &[u8]) -> Result<Option<&[u8]>, &'static str> {
    let Some((&kind, rest)) = message.split_first() else { return Ok(None) };
    if kind != CLIENT_HELLO {
        return Err("its TLS does not begin with a hello");
    }
    let Some((&[high, middle, low], body)) = rest.split_first_chunk() else { return Ok(None) };
    let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
    if length > HELLO_BYTES_MAX {
        return Err("its TLS hello is too long");
    }
    Ok(body.get(..length))
}

/// None if it cannot be read.
fn name(body: &[u8]) -> Option<Result<Option<RemoteHost>, &'static str>> {
    let mut body = Reader(body);
    body.take(2 + RANDOM_BYTES)?;
    body.short_list()?;
    body.list()?;
    body.short_list()?;
    if body.0.is_empty() {
        return Some(Ok(None));
    }
    let mut extensions = Reader(body.list()?);
    if !body.0.is_empty() {
        return None;
    }
    let mut found = None;
    while !extensions.0.is_empty() {
        let (kind, value) = (extensions.number()?, extensions.list()?);
        if kind == SERVER_NAME {
            if found.is_some() {
                return Some(Err("its TLS hello has two names"));
            }
            found = Some(value);
        }
    }
    let Some(value) = found else { return Some(Ok(None)) };
    let mut value = Reader(value);
    let mut names = Reader(value.list()?);
    let kind = names.take(1)?[0];
    let text = names.list()?;
    if kind != HOST_NAME || !names.0.is_empty() || !value.0.is_empty() {
        return Some(Err("its TLS hello has two names"));
    }
    let host = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    Some(host.map(Some).ok_or("the name in its TLS hello is not one"))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        self.take(2).map(|bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    }

    /// With a length of two bytes before it.
    fn list(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length)
    }

    /// With a length of one byte.
    fn short_list(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.take(1)?[0]);
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listed(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    fn server_name(names: &[&[u8]]) -> Vec<u8> {
        let list: Vec<u8> = names.iter().flat_map(|name| [vec![0], listed(name)].concat()).collect();
        [vec![0, 0], listed(&listed(&list))].concat()
    }

    fn message(extensions: &[u8]) -> Vec<u8> {
        let body =
            [&[3, 3][..], &[7; 32], &[2, 1, 2], &listed(&[0x13, 1, 0x13, 2]), &[1, 0], &listed(extensions)]
                .concat();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[1], &length[1..], &body].concat()
    }

    fn records(message: &[u8], each: usize) -> Vec<u8> {
        message.chunks(each).flat_map(|part| [vec![22, 3, 1], listed(part)].concat()).collect()
    }

    fn named(name: &str) -> FirstBytes {
        FirstBytes::TlsHello { name: Some(name.parse().unwrap()) }
    }

    #[test]
    fn the_name_of_a_hello_is_found_however_it_is_cut() {
        let other = [vec![0, 16], listed(&[1, 2, 3])].concat();
        let hello = message(&[other, server_name(&[b"API.example.org"])].concat());
        for each in [1, 2, 3, 7, 50, 1_000] {
            let bytes = records(&hello, each);
            assert_eq!(FirstBytes::new(&bytes), named("api.example.org"), "{each}");
            for end in 0..bytes.len() {
                assert_eq!(FirstBytes::new(&bytes[..end]), FirstBytes::Incomplete, "{each} {end}");
            }
        }
        assert_eq!(FirstBytes::new(&records(&message(&[]), 64)), FirstBytes::TlsHello { name: None });
    }

    #[test]
    fn a_hello_that_could_name_another_host_is_broken() {
        let two = message(&server_name(&[b"a.org", b"b.org"]));
        let twice = message(&[server_name(&[b"a.org"]), server_name(&[b"b.org"])].concat());
        let dot = message(&server_name(&[b"a.org."]));
        let zero = message(&server_name(&[b"a.org\0.b.org"]));
        let empty = message(&server_name(&[b""]));
        for message in [two, twice, dot, zero, empty, vec![2, 0, 0, 0]] {
            assert!(matches!(FirstBytes::new(&records(&message, 64)), FirstBytes::Broken(_)), "{message:?}");
        }
        let interrupted = [records(&[1, 0, 1], 3), vec![23, 3, 3, 0, 1, 0]].concat();
        assert!(matches!(FirstBytes::new(&interrupted), FirstBytes::Broken(_)));
        assert!(matches!(FirstBytes::new(&records(&[1, 0xff, 0, 0], 4)), FirstBytes::Broken(_)));
        assert!(matches!(FirstBytes::new(&[22, 3, 1, 0, 0]), FirstBytes::Broken(_)));
        assert!(matches!(FirstBytes::new(&[22, 2, 1, 0, 5]), FirstBytes::Broken(_)));
    }

    /// G26 (tunnels): HTTP that is not encrypted is recognized by its first line, whatever its method and however it is cut.
    #[test]
    fn g26_what_is_not_tls_is_told_apart() {
        for (bytes, first) in [
            (&b"GET / HTTP/1.1\r\n"[..], FirstBytes::PlainHttp),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", FirstBytes::PlainHttp),
            (b"POST ", FirstBytes::PlainHttp),
            (b"PO", FirstBytes::Incomplete),
            (b"\r\n", FirstBytes::Incomplete),
            (b"\r\nGET / HTTP/1.1\r\n", FirstBytes::PlainHttp),
            (b" GET / HTTP/1.1\r\n", FirstBytes::PlainHttp),
            (b"\n\nget / HTTP/1.1\r\n", FirstBytes::PlainHttp),
            // What servers take for white space.
            (b"\x0bGET / HTTP/1.1\r\n", FirstBytes::PlainHttp),
            (b"\x0c\x1cGET / HTTP/1.1\r\n", FirstBytes::PlainHttp),
            (b"\x85\xa0GET / HTTP/1.1\r\n", FirstBytes::PlainHttp),
            (b"GET\x0c/ HTTP/1.1\r\n", FirstBytes::PlainHttp),
            (b"GET\xa0/ HTTP/1.1\r\n", FirstBytes::PlainHttp),
            (b"PROPFIND / HTTP/1.1\r\n", FirstBytes::PlainHttp),
            (b"PROPFIND", FirstBytes::Incomplete),
            (b"PROPFIND /a", FirstBytes::Incomplete),
            (b"X-Y_Z!\t/\xff\thttp/1.1\n", FirstBytes::PlainHttp),
            (b"CONNECT b.org:80 HTTP/1.1\r\n", FirstBytes::PlainHttp),
            (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", FirstBytes::ProxyPrefix),
            (b"PROXY", FirstBytes::Incomplete),
            (b"\r\n\r\n\0\r\nQUIT\n!", FirstBytes::ProxyPrefix),
            (b"\r\n\r\n\0", FirstBytes::Incomplete),
            (b"PING\r\n", FirstBytes::Other),
            (b"AMQP\0\0\x09\x01", FirstBytes::Other),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", FirstBytes::Other),
            (b"*1\r\n$4\r\nPING\r\n", FirstBytes::Other),
            (b"SSH-2.0-OpenSSH_9.6\r\n", FirstBytes::Other),
            (b"EHLO a.org\r\n", FirstBytes::Other),
            (b"\x80\x2e\x01", FirstBytes::Other),
        ] {
            assert_eq!(FirstBytes::new(bytes), first, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = FirstBytes::new(&[&[22, 3, 1][..], &bytes].concat());
            let _ = FirstBytes::new(&records(&[vec![1, 0, 1, 0], bytes].concat(), 33));
        }
    }
}
