//! Against real sockets: what the other side sees, and what the caller is told.

use super::*;
use std::{io, sync::Mutex};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A server that answers every connection with the same bytes, and keeps what was sent to it.
struct Server {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn answering(address: &str, answer: impl Into<Vec<u8>>) -> Self {
        let answer: Vec<u8> = answer.into();
        Self::speaking(address, move |mut stream| {
            let answer = answer.clone();
            async move {
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    /// A server that has read a request's head does what it is told.
    async fn speaking<F>(address: &str, speak: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut got = Vec::new();
                let mut piece = [0; 4096];
                while !got.windows(4).any(|four| four == b"\r\n\r\n") {
                    match stream.read(&mut piece).await {
                        Ok(read) if read > 0 => got.extend_from_slice(&piece[..read]),
                        _ => break,
                    }
                }
                kept.lock().unwrap().push(String::from_utf8_lossy(&got).to_ascii_lowercase());
                tokio::spawn(speak(stream));
            }
        });
        Self { port, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn outbound(allowed: &str) -> Outbound {
    Outbound::new(allowed.parse().unwrap()).unwrap()
}

fn get(url: String) -> Call {
    Call::new(Method::GET, url).within(Duration::from_secs(10))
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[derive(Debug)]
struct Names(Mutex<Vec<Vec<IpAddr>>>);

#[async_trait::async_trait]
impl Lookup for Names {
    /// The next addresses of the name, which changes them with every look.
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let mut left = self.0.lock().unwrap();
        Ok(if left.len() > 1 { left.remove(0) } else { left[0].clone() })
    }
}

fn named(allowed: &str, answers: &[&[&str]]) -> Outbound {
    let answers = answers.iter().map(|one| one.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
    Outbound::looking_up(allowed.parse().unwrap(), Arc::new(Names(Mutex::new(answers)))).unwrap()
}

#[tokio::test]
async fn an_allowed_destination_gets_the_call_and_its_answer_comes_back() {
    let server = Server::answering("127.0.0.1", ok("made")).await;
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", HeaderValue::from_static("k-1"));
    let call = Call::new(Method::POST, format!("http://127.0.0.1:{}/x?y=1", server.port)).headers(headers);
    let reply = outbound("127.0.0.0/8").send(call.body("hello")).await.unwrap();
    assert_eq!((reply.status, &reply.body[..], reply.cut), (StatusCode::OK, &b"made"[..], false));
    let heard = server.heard().remove(0);
    assert!(
        heard.starts_with("post /x?y=1 http/1.1\r\n") && heard.contains("idempotency-key: k-1"),
        "{heard}"
    );
    assert!(heard.contains("user-agent: keyturn/"), "{heard}");
}

#[tokio::test]
async fn every_spelling_of_an_address_that_is_not_public_is_refused_unsent() {
    let server = Server::answering("127.0.0.1", ok("")).await;
    let client = outbound("public");
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.01",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::7f00:1]",
        "[64:ff9b::7f00:1]",
        "[fe80::1]",
        "[fd00::1]",
        "169.254.169.254",
        "localhost",
        "LOCALHOST",
    ] {
        let failure = client.send(get(format!("http://{host}:{}/", server.port))).await.unwrap_err();
        assert!(matches!(failure, Failure::NeverSent(Why::NotAllowed(_))), "{host}: {failure:?}");
    }
    assert!(server.heard().is_empty());
}

#[tokio::test]
async fn a_name_that_changes_its_address_gains_nothing() {
    let server = Server::answering("127.0.0.1", ok("")).await;
    // What was checked by an earlier look does not count: each connection goes to what its own look found.
    let client = named("public", &[&["127.0.0.1"], &["::1"], &["10.0.0.1", "169.254.169.254"]]);
    for _ in 0..3 {
        let call = get(format!("http://rebinding.example.org:{}/", server.port));
        let failure = client.send(call).await.unwrap_err();
        assert!(matches!(failure, Failure::NeverSent(Why::NotAllowed(_))), "{failure:?}");
    }
    assert!(server.heard().is_empty());
    // A listed name cannot be pointed at the machine either; a listed network can be reached by a name, and of several
    // addresses only those in it are.
    let client = named("rebinding.example.org", &[&["127.0.0.1"]]);
    let call = || get(format!("http://rebinding.example.org:{}/", server.port));
    assert!(client.send(call()).await.is_err());
    let client = named("127.0.0.1", &[&["127.0.0.2", "::1", "127.0.0.1"]]);
    assert_eq!(client.send(call()).await.unwrap().status, StatusCode::OK);
}

#[tokio::test]
async fn a_redirect_leads_nowhere_that_is_not_allowed() {
    let inner = Server::answering("127.0.0.1", ok("secret")).await;
    let location = format!("http://127.0.0.1:{}/", inner.port);
    for status in [301, 302, 303, 307, 308] {
        let moved = format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let outer = Server::answering("127.0.0.2", moved).await;
        let url = format!("http://127.0.0.2:{}/", outer.port);
        let failure = outbound("127.0.0.2").send(get(url).following(3)).await.unwrap_err();
        let Failure::InDoubt { status: seen, why: Why::Redirect { cause, .. } } = failure else {
            panic!("{failure:?}")
        };
        assert_eq!(seen.unwrap().as_u16(), status);
        assert!(cause.contains("is not among the destinations"), "{cause}");
    }
    assert!(inner.heard().is_empty());
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    let inner = Server::answering("127.0.0.1", ok("there")).await;
    let moved = |port| {
        format!("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{port}/\r\ncontent-length: 0\r\n\r\n")
    };
    let outer = Server::answering("127.0.0.1", moved(inner.port)).await;
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer hush"));
    headers.insert("x-api-key", HeaderValue::from_static("hush"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let url = format!("http://127.0.0.1:{}/", outer.port);
    let reply = outbound("127.0.0.1").send(get(url).headers(headers).following(1)).await.unwrap();
    assert_eq!(&reply.body[..], b"there");
    assert!(outer.heard()[0].contains("bearer hush") && outer.heard()[0].contains("x-api-key"));
    assert!(!inner.heard()[0].contains("hush") && inner.heard()[0].contains("accept: application/json"));
}

#[tokio::test]
async fn a_redirect_is_followed_a_bounded_number_of_times_and_only_by_reading() {
    let circle = "HTTP/1.1 302 Found\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n";
    let server = Server::answering("127.0.0.1", circle).await;
    let url = format!("http://127.0.0.1:{}/", server.port);
    let client = outbound("127.0.0.1");
    let failure = client.send(get(url.clone()).following(2)).await.unwrap_err();
    assert!(failure.to_string().contains("more than 2 times"), "{failure}");
    assert_eq!(server.heard().len(), 3);
    let reply = client.send(Call::new(Method::POST, url.clone()).following(2)).await.unwrap();
    assert_eq!(reply.status, StatusCode::FOUND);
    assert_eq!(client.send(get(url)).await.unwrap().status, StatusCode::FOUND);
    assert_eq!(server.heard().len(), 5);
}

#[tokio::test]
async fn what_was_never_sent_is_told_from_what_is_in_doubt() {
    let client = outbound("127.0.0.1");
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let failure = client.send(get(format!("http://127.0.0.1:{closed}/"))).await.unwrap_err();
    assert!(matches!(failure, Failure::NeverSent(Why::Connect { .. })), "{failure:?}");
    // Encryption that is not agreed on comes before anything of the call.
    let plain = Server::answering("127.0.0.1", "no encryption here\r\n\r\n").await;
    let failure = client.send(get(format!("https://127.0.0.1:{}/", plain.port))).await.unwrap_err();
    assert!(matches!(failure, Failure::NeverSent(Why::Connect { .. })), "{failure:?}");
    for answer in ["", "HTTP/1.1 200", "not HTTP at all\r\n\r\n"] {
        let server = Server::answering("127.0.0.1", answer).await;
        let failure = client.send(get(format!("http://127.0.0.1:{}/", server.port))).await.unwrap_err();
        assert!(matches!(failure, Failure::InDoubt { status: None, .. }), "{answer}: {failure:?}");
    }
    let broken =
        Server::answering("127.0.0.1", "HTTP/1.1 201 Created\r\ncontent-length: 10\r\n\r\nhalf").await;
    let failure = client.send(get(format!("http://127.0.0.1:{}/", broken.port))).await.unwrap_err();
    assert!(matches!(failure, Failure::InDoubt { status: Some(StatusCode::CREATED), .. }), "{failure:?}");
}

#[tokio::test]
async fn a_body_that_only_drips_ends_with_the_time() {
    let server = Server::speaking("127.0.0.1", |mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
        while stream.write_all(b".").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let call = get(format!("http://127.0.0.1:{}/", server.port)).within(Duration::from_millis(400));
    let failure = outbound("127.0.0.1").send(call).await.unwrap_err();
    let Failure::InDoubt { status: Some(StatusCode::OK), why: Why::TooSlow { .. } } = failure else {
        panic!("{failure:?}")
    };
    // Whoever wants only the beginning does not wait for the rest.
    let call = get(format!("http://127.0.0.1:{}/", server.port)).beginning_only(2);
    let reply = outbound("127.0.0.1").send(call).await.unwrap();
    assert_eq!((&reply.body[..], reply.cut), (&b".."[..], true));
}

#[tokio::test]
async fn an_answer_is_bounded_in_body_and_headers() {
    let server = Server::answering("127.0.0.1", ok("12345")).await;
    let url = format!("http://127.0.0.1:{}/", server.port);
    let client = outbound("127.0.0.1");
    assert_eq!(&client.send(get(url.clone()).at_most(5)).await.unwrap().body[..], b"12345");
    let failure = client.send(get(url).at_most(4)).await.unwrap_err();
    assert!(matches!(failure, Failure::InDoubt { why: Why::Body { most: 4, .. }, .. }), "{failure:?}");
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "a".repeat(MOST_HEADERS));
    let server = Server::answering("127.0.0.1", long).await;
    let failure = client.send(get(format!("http://127.0.0.1:{}/", server.port))).await.unwrap_err();
    assert!(matches!(failure, Failure::InDoubt { why: Why::Headers(_), .. }), "{failure:?}");
}

#[tokio::test]
async fn no_failure_shows_a_secret() {
    let moved = "HTTP/1.1 302 Found\r\nlocation: http://u:hush@10.0.0.1/?t=hush\r\nx: hush\r\n\r\nhush";
    let server = Server::answering("127.0.0.1", moved).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer hush"));
    for url in [
        "http://u:hush@127.0.0.1/".to_owned(),
        "http://hush@127.0.0.1/".into(),
        "ftp://127.0.0.1/hush".into(),
        "hush".into(),
        "http://10.0.0.1/hush?hush#hush".into(),
        format!("http://127.0.0.1:{closed}/hush?token=hush"),
        format!("http://127.0.0.1:{}/hush?token=hush", server.port),
        format!("http://127.0.0.1/{}", "hush".repeat(600)),
    ] {
        let call = get(url).headers(headers.clone()).following(2);
        assert!(!format!("{call:?}").contains("hush"));
        let failure = outbound("127.0.0.1").send(call).await.unwrap_err();
        assert!(!format!("{failure} {failure:?}").contains("hush"), "{failure:?}");
    }
}
