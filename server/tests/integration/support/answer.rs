//! An answer, read to its end.

use reqwest::header::HeaderMap;
use serde_json::Value;

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) async fn of(call: reqwest::RequestBuilder) -> Self {
        Self::try_of(call).await.unwrap()
    }

    pub(crate) async fn try_of(call: reqwest::RequestBuilder) -> reqwest::Result<Self> {
        let response = call.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Self { status, headers, body: response.bytes().await?.to_vec() })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}: {}", self.status, self.text()))
    }

    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().unwrap_or_else(|| panic!("no id: {}", self.text())).to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Demands a status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// Demands a problem, in its proper shape and without what must stay inside.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, slug: &str) -> Self {
        let text = self.text();
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{text}");
        let problem = self.json();
        assert_eq!(problem["type"], format!("/problems/{slug}"), "{text}");
        assert_eq!(problem["status"], status, "{text}");
        for inner in ["SQL", "constraint", "sqlite", "/tmp/", "panicked"] {
            assert!(!text.contains(inner), "{text}");
        }
        self
    }

    /// What a repeat must have in common with its first answer.
    pub(crate) fn lasting(&self) -> (u16, Vec<Option<String>>, Vec<u8>) {
        let kept = ["content-type", "location", "etag"].map(|name| self.header(name).map(str::to_owned));
        (self.status, kept.to_vec(), self.body.clone())
    }

    /// Demands that this is the first answer again, with the state of its request now.
    #[track_caller]
    pub(crate) fn repeats(&self, first: &Self) {
        self.repeats_without_state(first);
        assert!(self.header("keyturn-request-state").is_some());
    }

    /// Demands that this is the first answer again; there is no request behind it.
    #[track_caller]
    pub(crate) fn repeats_without_state(&self, first: &Self) {
        assert_eq!(self.lasting(), first.lasting(), "{} / {}", self.text(), first.text());
        assert_eq!(self.header("idempotency-replayed"), Some("true"));
    }
}
