//! The load: 64 connections, each of which waits for its answer before it sends again.

use crate::server::Server;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

/// How many connections send at once.
pub(crate) const CONNECTIONS: u64 = 64;

/// What is sent: the number of the key behind the n-th call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keys {
    /// A new key each time, numbered from here.
    New(u64),
    /// These many keys, over and over.
    Repeated(u64),
    /// Each key eight times at once, numbered from here.
    Storm(u64),
}

impl Keys {
    fn number(self, nth: u64) -> u64 {
        match self {
            Self::New(from) => from + nth,
            Self::Repeated(among) => nth % among,
            Self::Storm(from) => from + nth / 8,
        }
    }
}

/// What a measurement saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// How long each answered call took.
    pub(crate) spans: Vec<Duration>,
    /// How many calls were sent in all, the warm-up's among them.
    pub(crate) sent: u64,
    /// How many were refused for now (409, 429).
    pub(crate) refused: u64,
    /// How many were answered with 5xx.
    pub(crate) failed: u64,
    /// The body of one answer.
    pub(crate) body: String,
}

/// Sends from every connection: a warm-up, then for as long as is measured.
pub(crate) async fn load(server: &Server, keys: Keys, warm_up: Duration, measured: Duration) -> Seen {
    let count = Arc::new(AtomicU64::new(0));
    let begin = Instant::now() + warm_up;
    let end = begin + measured;
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (count, head) = (Arc::clone(&count), server.head());
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        connections.spawn(async move {
            let mut seen = Seen::default();
            let mut answer = Vec::with_capacity(4096);
            while Instant::now() < end {
                let call = submission(&head, keys.number(count.fetch_add(1, Ordering::Relaxed)));
                let sent = Instant::now();
                let status = ask(&mut stream, call.as_bytes(), &mut answer).await;
                let answered = Instant::now();
                match status {
                    200..300 if sent >= begin && answered <= end => seen.spans.push(answered - sent),
                    200..300 => {}
                    500.. => seen.failed += 1,
                    _ => seen.refused += 1,
                }
            }
            let text = String::from_utf8_lossy(&answer);
            seen.body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
            seen
        });
    }
    let mut all = Seen::default();
    for one in connections.join_all().await {
        all.spans.extend(one.spans);
        all.refused += one.refused;
        all.failed += one.failed;
        all.body = one.body;
    }
    all.sent = count.load(Ordering::Relaxed);
    all
}

/// A create as it goes over the wire.
fn submission(head: &str, number: u64) -> String {
    let body = format!(
        r#"{{"offering":"fast","name":"bench-{number}","parameters":{{"size":"small","count":{}}}}}"#,
        number % 100 + 1
    );
    format!(
        "{head}Idempotency-Key: 0190a5d0-0000-7000-8000-{number:012}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends one call and reads its answer to the end; its status.
async fn ask(stream: &mut TcpStream, call: &[u8], answer: &mut Vec<u8>) -> u16 {
    stream.write_all(call).await.unwrap();
    answer.clear();
    loop {
        assert_ne!(stream.read_buf(answer).await.unwrap(), 0, "the server closed the connection");
        let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&answer[..end]).unwrap();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
        });
        if answer.len() >= end + 4 + length.unwrap() {
            return head[9..12].parse().unwrap();
        }
    }
}
