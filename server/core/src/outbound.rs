//! The one client for calls to the outside. Everything the portal sends anywhere goes through it, so that one place
//! keeps the promises: only destinations that the administrator allows, checked against the very address that is
//! connected to; bounded time and size; no proxies or redirects that lead elsewhere; no secret in an error.
//!
//! What comes back tells a call that never left ([`Failure::NeverSent`], safe to repeat) from one that the other side
//! may have carried out ([`Failure::InDoubt`]).

mod allow;
mod resolve;
#[cfg(test)]
mod tests;

pub use allow::AllowList;
pub use reqwest::{
    Method, StatusCode, Url,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};

use bytes::{Bytes, BytesMut};
use resolve::{Checked, Lookup, NotAllowed, SystemLookup};
use std::{
    error::Error as StdError,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

/// How long finding the address, connecting and agreeing on encryption may take together. What takes longer was never
/// sent.
pub const CONNECT: Duration = Duration::from_secs(5);
/// How long a call may take from its beginning to the last byte of the answer, unless it says otherwise.
pub const TOTAL: Duration = Duration::from_secs(30);
/// How many bytes of an answer's body are read, unless the call says otherwise.
pub const MOST_BODY: usize = 1024 * 1024;
/// How many bytes the names and values of an answer's headers may have together.
pub const MOST_HEADERS: usize = 32 * 1024;
/// The longest address that is called.
pub const LONGEST_URL: usize = 2048;
/// How many redirects a call may follow at the most.
pub const MOST_REDIRECTS: u8 = 5;

/// The client. Cheap to clone.
#[derive(Clone)]
pub struct Outbound {
    client: reqwest::Client,
    allowed: Arc<AllowList>,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

/// One call.
#[derive(Clone)]
pub struct Call {
    method: Method,
    url: String,
    headers: HeaderMap,
    body: Bytes,
    total: Duration,
    most_body: usize,
    cut: bool,
    redirects: u8,
}

impl fmt::Debug for Call {
    /// Without the address, headers and body, each of which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Call {
    /// A call without headers and body, that follows no redirect.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            total: TOTAL,
            most_body: MOST_BODY,
            cut: false,
            redirects: 0,
        }
    }

    /// With these headers, in place of any set before.
    #[must_use]
    pub fn headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
    }

    /// With this body.
    #[must_use]
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Taking at most so long in all. What is not over [`CONNECT`] cannot tell a connection that is not made from doubt.
    #[must_use]
    pub fn within(self, total: Duration) -> Self {
        Self { total, ..self }
    }

    /// Failing if the answer's body is longer.
    #[must_use]
    pub fn at_most(self, bytes: usize) -> Self {
        Self { most_body: bytes, cut: false, ..self }
    }

    /// Reading only the beginning of the answer's body; the rest is not waited for.
    #[must_use]
    pub fn beginning_only(self, bytes: usize) -> Self {
        Self { most_body: bytes, cut: true, ..self }
    }

    /// Following up to so many redirects, [`MOST_REDIRECTS`] at the most. Only `GET` and `HEAD` are: of any other method
    /// a redirect is an answer like any other, since nobody can tell whether the first call was carried out.
    #[must_use]
    pub fn following(self, redirects: u8) -> Self {
        Self { redirects: redirects.min(MOST_REDIRECTS), ..self }
    }
}

/// An answer, whatever its status.
#[derive(Clone)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, or the beginning of it if the call asked for no more.
    pub body: Bytes,
    /// Whether the body went on.
    pub cut: bool,
}

impl fmt::Debug for Reply {
    /// Without headers and body, which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Why there is no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Nothing of the call left the portal; it can be repeated.
    #[error("{0}")]
    NeverSent(Why),
    /// The other side may have carried the call out.
    #[error("{why}")]
    InDoubt {
        /// The status of the answer, if it came so far.
        status: Option<StatusCode>,
        /// What went wrong.
        why: Why,
    },
}

/// What went wrong. Names no more of the address than host and port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The address cannot be called at all.
    #[error("the address cannot be called: {0}")]
    Address(&'static str),
    /// The settings do not allow the destination.
    #[error("{0} is not among the destinations that KEYTURN_OUTBOUND_ALLOW allows")]
    NotAllowed(String),
    /// There is no connection.
    #[error("no connection to {place}: {cause}")]
    Connect {
        /// Host and port.
        place: String,
        /// What the network or the encryption said.
        cause: String,
    },
    /// The connection broke, or what came is no HTTP.
    #[error("the connection to {0} broke before the answer was complete")]
    Broken(String),
    /// The whole call took too long.
    #[error("{place} did not answer in full within {} s", .total.as_secs_f32())]
    TooSlow {
        /// Host and port.
        place: String,
        /// The time it had.
        total: Duration,
    },
    /// The answer's headers are too long.
    #[error("the headers that {0} answered with are longer than {MOST_HEADERS} bytes")]
    Headers(String),
    /// The answer's body is too long.
    #[error("the body that {place} answered with is longer than {most} bytes")]
    Body {
        /// Host and port.
        place: String,
        /// The longest.
        most: usize,
    },
    /// A redirect that is not followed.
    #[error("{place} sent the call elsewhere: {cause}")]
    Redirect {
        /// Host and port.
        place: String,
        /// Why it was not followed.
        cause: String,
    },
}

/// How far a call came; outlives one that was broken off.
struct Progress {
    place: String,
    status: Option<StatusCode>,
}

impl Progress {
    fn doubt(&self, why: Why) -> Failure {
        Failure::InDoubt { status: self.status, why }
    }
}

impl Outbound {
    /// A client that calls what the list allows.
    pub fn new(allowed: AllowList) -> Result<Self, String> {
        Self::looking_up(allowed, Arc::new(SystemLookup))
    }

    fn looking_up(allowed: AllowList, lookup: Arc<dyn Lookup>) -> Result<Self, String> {
        let allowed = Arc::new(allowed);
        let client = reqwest::Client::builder()
            .user_agent(concat!("keyturn/", env!("CARGO_PKG_VERSION")))
            // A proxy would connect in our place, to addresses that nobody checked.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT)
            // On a connection kept open one cannot tell a call that never left from one in doubt.
            .pool_max_idle_per_host(0)
            .dns_resolver(Arc::new(Checked { allowed: Arc::clone(&allowed), lookup }))
            .build()
            .map_err(|error| innermost(&error))?;
        Ok(Self { client, allowed })
    }

    /// Checks what can be told of an address before it is called; for forms and catalogs, so that a mistake shows when it
    /// is made. The call checks again.
    pub fn check(&self, url: &str) -> Result<Url, Why> {
        if url.len() > LONGEST_URL {
            return Err(Why::Address("it is longer than 2048 characters"));
        }
        let url = Url::parse(url).map_err(|_| Why::Address("write http:// or https:// and a host"))?;
        self.check_parsed(&url)?;
        Ok(url)
    }

    fn check_parsed(&self, url: &Url) -> Result<(), Why> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Why::Address("it must begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Why::Address("it holds a user's name or password; send credentials in a header"));
        }
        let Some(host) = url.host_str() else { return Err(Why::Address("it names no host")) };
        // Of a literal address nothing is looked up, so the resolver never sees it.
        let may_go = match literal(host) {
            Some(address) => self.allowed.permits(None, address),
            None => self.allowed.may_look_up(host),
        };
        if may_go { Ok(()) } else { Err(Why::NotAllowed(place(url))) }
    }

    /// Makes a call. An answer of any status is a reply.
    pub async fn send(&self, call: Call) -> Result<Reply, Failure> {
        let url = self.check(&call.url).map_err(Failure::NeverSent)?;
        let mut progress = Progress { place: place(&url), status: None };
        match tokio::time::timeout(call.total, self.run(&call, url, &mut progress)).await {
            Ok(ended) => ended,
            Err(_) => Err(progress.doubt(Why::TooSlow { place: progress.place.clone(), total: call.total })),
        }
    }

    async fn run(&self, call: &Call, mut url: Url, progress: &mut Progress) -> Result<Reply, Failure> {
        let mut headers = call.headers.clone();
        let mut left = if matches!(call.method, Method::GET | Method::HEAD) { call.redirects } else { 0 };
        let following = left > 0;
        loop {
            let response = self.exchange(call, &url, &headers, progress).await?;
            progress.status = Some(response.status());
            let size: usize =
                response.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
            if size > MOST_HEADERS {
                return Err(progress.doubt(Why::Headers(progress.place.clone())));
            }
            let target = following.then(|| location(&response)).flatten();
            let Some(target) = target else { return read(call, response, progress).await };
            let lost = |cause: String| progress.doubt(Why::Redirect { place: progress.place.clone(), cause });
            if left == 0 {
                return Err(lost(format!("it is redirected more than {} times", call.redirects)));
            }
            left -= 1;
            let next = target
                .to_str()
                .ok()
                .filter(|text| text.len() <= LONGEST_URL)
                .and_then(|text| url.join(text).ok())
                .ok_or_else(|| lost("the new address cannot be read".into()))?;
            if url.scheme() == "https" && next.scheme() != "https" {
                return Err(lost("the new address is not encrypted".into()));
            }
            self.check_parsed(&next).map_err(|why| lost(why.to_string()))?;
            if next.origin() != url.origin() {
                headers = harmless(&headers);
            }
            progress.place = place(&next);
            url = next;
        }
    }

    async fn exchange(
        &self,
        call: &Call,
        url: &Url,
        headers: &HeaderMap,
        progress: &Progress,
    ) -> Result<reqwest::Response, Failure> {
        let mut request = self.client.request(call.method.clone(), url.clone()).headers(headers.clone());
        if !call.body.is_empty() {
            request = request.body(call.body.clone());
        }
        request.send().await.map_err(|error| {
            let place = progress.place.clone();
            let why = if error.is_builder() {
                Why::Address("it is not one of HTTP")
            } else if causes(&error).any(<dyn StdError>::is::<NotAllowed>) {
                Why::NotAllowed(place)
            } else if error.is_connect() && error.is_timeout() {
                Why::Connect { place, cause: format!("it took longer than {} s", CONNECT.as_secs()) }
            } else if error.is_connect() {
                Why::Connect { place, cause: innermost(&error) }
            } else {
                return progress.doubt(Why::Broken(place));
            };
            // After a redirect something was sent already, if only to the first address.
            if progress.status.is_some() { progress.doubt(why) } else { Failure::NeverSent(why) }
        })
    }
}

/// Where an answer sends the caller.
fn location(response: &reqwest::Response) -> Option<HeaderValue> {
    let status = response.status().as_u16();
    matches!(status, 301 | 302 | 303 | 307 | 308).then(|| response.headers().get(header::LOCATION))?.cloned()
}

/// The headers that may go to another origin: none that could be a credential.
fn harmless(headers: &HeaderMap) -> HeaderMap {
    let kept = [header::ACCEPT, header::ACCEPT_LANGUAGE];
    headers
        .iter()
        .filter(|(name, _)| kept.contains(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Reads an answer's body in pieces, and no more of it than the call takes.
async fn read(call: &Call, mut response: reqwest::Response, progress: &Progress) -> Result<Reply, Failure> {
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    let mut body = BytesMut::new();
    loop {
        let piece = response.chunk().await;
        match piece.map_err(|_| progress.doubt(Why::Broken(progress.place.clone())))? {
            None => return Ok(Reply { status, headers, body: body.freeze(), cut: false }),
            Some(piece) if piece.len() <= call.most_body - body.len() => body.extend_from_slice(&piece),
            Some(piece) if call.cut => {
                body.extend_from_slice(&piece[..call.most_body - body.len()]);
                return Ok(Reply { status, headers, body: body.freeze(), cut: true });
            }
            Some(_) => {
                let place = progress.place.clone();
                return Err(progress.doubt(Why::Body { place, most: call.most_body }));
            }
        }
    }
}

/// The address that a host is, if it is no name. The parser of addresses has brought every spelling of IPv4 (decimal,
/// octal, hexadecimal, short) into the one with four numbers.
fn literal(host: &str) -> Option<IpAddr> {
    if let Some(inside) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    host.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

/// Host and port of an address, which is all that is ever shown of it.
fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or("?");
    url.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let this = next?;
        next = this.source();
        Some(this)
    })
}

/// The first cause of a failed connection, which knows of no address, header or body.
fn innermost(error: &reqwest::Error) -> String {
    let text = causes(error).skip(1).last().map_or_else(|| "it failed".to_owned(), ToString::to_string);
    text.chars().take(200).collect()
}
