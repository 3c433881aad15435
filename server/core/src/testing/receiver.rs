//! The other side of notifications: a server that keeps what it was sent, and answers what it was told to.

use crate::signature::{SharedSecret, StandardHeaders, standard_is_genuine};
use domain::time::Moment;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// One delivery as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn id(&self) -> String {
        self.headers["webhook-id"].clone()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn is_genuine(&self, secret: &str, now: Moment) -> bool {
        let header = |name: &str| self.headers.get(name).map(String::as_bytes);
        let headers = StandardHeaders {
            id: header("webhook-id"),
            timestamp: header("webhook-timestamp"),
            signature: header("webhook-signature"),
        };
        standard_is_genuine(&[SharedSecret::kept(secret.into()).unwrap()], headers, &self.body, now)
    }
}

/// The server.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<VecDeque<&'static str>>>,
}

impl Receiver {
    /// Answers the first deliveries like this, each a status line's end and headers, and every later one with 204. No
    /// answer at all is ever given for `hang`; of one after `stall`, the body never comes.
    pub(crate) async fn answering(answers: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            url: format!("http://127.0.0.1:{}/in", listener.local_addr().unwrap().port()),
            received: Arc::default(),
            answers: Arc::new(Mutex::new(answers.iter().copied().collect())),
        };
        let serving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().answer(stream));
            }
        });
        receiver
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    async fn answer(self, mut stream: TcpStream) {
        let Some(received) = read(&mut stream).await else { return };
        self.received.lock().unwrap().push(received);
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or("204 No Content");
        if answer == "hang" {
            std::future::pending::<()>().await;
        }
        if let Some(answer) = answer.strip_prefix("stall ") {
            let head = format!("HTTP/1.1 {answer}\r\ncontent-length: 2\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            std::future::pending::<()>().await;
        }
        let _ = stream.write_all(format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let headers: BTreeMap<String, String> = head
                .lines()
                .skip(1)
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                return Some(Received { headers, body: bytes[end + 4..end + 4 + length].to_vec() });
            }
        }
        let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
    }
}
