//! A browser without script: it keeps a cookie, sends forms, and follows where it is led.

use super::{Answer, Server};
use std::time::Duration;

/// A browser without script.
pub(crate) struct Browser {
    client: reqwest::Client,
    base: String,
    pub(crate) cookie: Option<String>,
}

impl Browser {
    pub(crate) fn new(server: &Server) -> Self {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_mins(1))
            .build()
            .unwrap();
        Self { client, base: server.base.clone(), cookie: None }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(self.client.get(format!("{}{path}", self.base))).await
    }

    /// Sends a form.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let call = self.client.post(format!("{}{path}", self.base)).form(fields);
        self.send(call.header("Origin", self.base.clone())).await
    }

    /// Sends a form as a page of another site would make a browser do.
    pub(crate) async fn post_from(&mut self, origin: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let call = self.client.post(format!("{}{path}", self.base)).form(fields);
        self.send(call.header("Origin", origin)).await
    }

    async fn send(&mut self, mut call: reqwest::RequestBuilder) -> Answer {
        if let Some(cookie) = &self.cookie {
            call = call.header("Cookie", cookie);
        }
        let answer = Answer::of(call.header("Accept", "text/html")).await;
        if let Some(set) = answer.header("set-cookie") {
            let pair = set.split(';').next().unwrap().to_owned();
            self.cookie = Some(pair).filter(|pair| !pair.ends_with('='));
        }
        answer
    }

    pub(crate) async fn log_in(&mut self, name: &str, password: &str) {
        let answer = self.post("/login", &[("name", name), ("password", password)]).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{}", answer.text());
    }
}

/// A page's markup as it is seen: without the marks by which its script finds places again.
pub(crate) fn shown(page: &Answer) -> String {
    page.text().replace("<!>", "")
}

/// The message that stands at a field of a form.
pub(crate) fn message(page: &Answer, field: &str) -> String {
    let text = shown(page);
    let mark = format!(" id=\"field-{field}-error\"");
    let (_, rest) = text.split_once(&mark).unwrap_or_else(|| panic!("no field {field}: {text}"));
    rest.split_once('>').and_then(|(_, rest)| rest.split("</p>").next()).unwrap().to_owned()
}

/// The value of a hidden field of a page.
pub(crate) fn hidden(page: &Answer, name: &str) -> String {
    let text = page.text();
    let inputs = text.split("<input").skip(1).map(|input| input.split('>').next().unwrap());
    let attribute = |input: &str, name: &str| {
        input.split_once(&format!(" {name}=\"")).map(|(_, rest)| rest.split('"').next().unwrap().to_owned())
    };
    inputs
        .filter(|input| attribute(input, "name").as_deref() == Some(name))
        .find_map(|input| attribute(input, "value"))
        .unwrap_or_else(|| panic!("no field {name}: {text}"))
}
