//! Connections: taken up to a number, each dropped when its sender does not get a request's head across in time, and all
//! led to their end when the server stops. What a body may take is bounded where bodies are read.

use super::path;
use axum::{Router, extract::connect_info::ConnectInfo};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

/// What connections may take up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How many are open at once; further ones wait to be taken.
    pub(crate) open: usize,
    /// How long one may take from its opening, or from its last answer, until the next request's head is complete.
    pub(crate) head: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { open: 10_000, head: Duration::from_mins(1) }
    }
}

/// How long to wait when no connection can be taken, as when the machine has no file descriptors left.
const BREATH: Duration = Duration::from_millis(500);

/// Serves until `stop`, and then until every open exchange has had its answer.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: CancellationToken) {
    let (places, open) = (Arc::new(Semaphore::new(limits.open)), TaskTracker::new());
    loop {
        let taken = async {
            // The semaphore is never closed, so the place is always given in the end.
            let place = Arc::clone(&places).acquire_owned().await.ok();
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            taken = taken => taken,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = connection(stream, peer, router.clone(), limits.head, stop.clone());
                open.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    drop(listener);
    open.close();
    open.wait().await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    head: Duration,
    stop: CancellationToken,
) {
    // Small answers must not wait to be gathered; where that cannot be had, they are only later.
    let _ = stream.set_nodelay(true);
    let service = router.map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        path::made_readable(request.uri_mut());
        request
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        // A caller who sends all of it and hangs up at once has sent it: that it sends no more is not that it never asked.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut served = pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        // Senders who hang up or are too slow are daily life.
        tracing::debug!(%error, "a connection broke off");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::future::IntoFuture;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const HEAD: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(20);

    struct Listening {
        address: SocketAddr,
        stop: CancellationToken,
        served: tokio::task::JoinHandle<()>,
    }

    async fn listening(open: usize, router: Router) -> Listening {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let served = tokio::spawn(serve(listener, router, Limits { open, head: HEAD }, stop.clone()));
        Listening { address, stop, served }
    }

    fn hello() -> Router {
        Router::new()
            .route("/", get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() }))
    }

    async fn rest(stream: &mut TcpStream) -> String {
        let mut text = Vec::new();
        // A connection that is reset has told all it will.
        let _ =
            tokio::time::timeout(LONG, stream.read_to_end(&mut text)).await.expect("it is closed in time");
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_ends_the_connection_and_one_that_does_is_answered() {
        let Listening { address, .. } = listening(8, hello()).await;
        for sent in ["", "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "] {
            let mut slow = TcpStream::connect(address).await.unwrap();
            slow.write_all(sent.as_bytes()).await.unwrap();
            assert!(!rest(&mut slow).await.contains("200 OK"));
        }
        let mut good = TcpStream::connect(address).await.unwrap();
        let own = good.local_addr().unwrap().to_string();
        good.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let answer = rest(&mut good).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with(&own), "{answer}");
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait_for_a_place() {
        let Listening { address, .. } = listening(1, hello()).await;
        let idle = TcpStream::connect(address).await.unwrap();
        let mut second = TcpStream::connect(address).await.unwrap();
        second.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        // The first is dropped for want of a head, and the second has its turn.
        assert!(rest(&mut second).await.starts_with("HTTP/1.1 200 OK"));
        drop(idle);
    }

    #[tokio::test]
    async fn who_sends_all_and_hangs_up_at_once_was_heard() {
        let (heard, tell) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let counted = Arc::clone(&heard);
        let router = Router::new().route(
            "/",
            get(move || async move {
                // Not at the first look, as where a call passes through several layers.
                tokio::task::yield_now().await;
                counted.add_permits(1);
            }),
        );
        let Listening { address, .. } = listening(64, router).await;
        for _ in 0..50 {
            let tell = Arc::clone(&tell);
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
                drop(stream);
                tell.add_permits(1);
            });
        }
        for (what, all) in [("sent", &tell), ("heard", &heard)] {
            let fifty = tokio::time::timeout(LONG, all.acquire_many(50)).await;
            fifty.unwrap_or_else(|_| panic!("{what}: {} of 50", all.available_permits())).unwrap().forget();
        }
    }

    #[tokio::test]
    async fn what_is_being_answered_when_the_server_stops_is_answered() {
        let (begun, stopped) = (Arc::new(Semaphore::new(0)), CancellationToken::new());
        let (tell, wait) = (Arc::clone(&begun), stopped.clone());
        let router = Router::new().route(
            "/",
            get(move || async move {
                tell.add_permits(1);
                wait.cancelled().await;
                "done"
            }),
        );
        let Listening { address, stop, served } = listening(8, router).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        begun.acquire().await.unwrap().forget();
        stop.cancel();
        stopped.cancel();
        assert!(rest(&mut stream).await.ends_with("done"));
        tokio::time::timeout(LONG, served.into_future()).await.unwrap().unwrap();
        assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    }
}
