//! Offerings whose things are made elsewhere: what `http` and `kestra` in `offering.yaml` say. Every template and every
//! expression is read here once, so that a mistake in one has a line and not a request that it fails.

use super::{
    offering::span,
    sheet::{Members, Sheet},
    yaml::{Kind, Member, Node, Place},
};
use crate::{
    outbound::{HeaderName, Method},
    provisioner::{
        http::{
            plan::{Answer, CallPlan, LookPlan, Plan, PollPlan},
            texts::{Shape, Texts},
        },
        kestra,
        named_secrets::{NamedSecrets, Source},
    },
};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// The longest template or expression.
const LONGEST_TEXT: usize = 4000;
/// The longest time one call may be given, and one may wait between looks.
const LONGEST_CALL: Duration = Duration::from_mins(5);
const LONGEST_LOOK: Duration = Duration::from_hours(1);

/// What an offering does besides making and removing things.
pub(super) struct Does<'n> {
    pub(super) updates: bool,
    pub(super) actions: Vec<&'n str>,
    pub(super) timeout: Duration,
}

/// A reader of texts, which notes the mistakes in them.
struct Reader<'s> {
    sheet: &'s mut Sheet,
    texts: Texts,
}

impl Reader<'_> {
    fn template<'n>(&mut self, node: &'n Node, name: &str) -> Option<&'n str> {
        let text = self.sheet.text(node, name, LONGEST_TEXT)?;
        self.check(node.place, name, self.texts.check_template(text));
        Some(text)
    }

    fn expression(&mut self, members: &Members<'_>, name: &str) -> Option<String> {
        let node = members.get(name)?;
        let text = self.sheet.text(node, name, LONGEST_TEXT)?;
        self.check(node.place, name, self.texts.check_expression(text));
        Some(text.to_owned())
    }

    fn check(&mut self, place: Place, name: &str, checked: Result<(), String>) {
        if let Err(why) = checked {
            self.sheet.note(place, format!("{name:?} cannot be read: {why}"));
        }
    }

    /// The members of a mapping whose names are free.
    fn free<'n>(&mut self, members: &Members<'n>, name: &str) -> &'n [Member] {
        match members.get(name).map(|node| (node.place, &node.kind)) {
            None => &[],
            Some((_, Kind::Map(members))) => members,
            Some((place, _)) => {
                self.sheet.note(place, format!("{name:?} must be a mapping"));
                &[]
            }
        }
    }

    fn named_expressions(&mut self, members: &Members<'_>, name: &str) -> Vec<(String, String)> {
        let mut named = Vec::new();
        for member in self.free(members, name) {
            if let Some(text) = self.sheet.text(&member.value, &member.name, LONGEST_TEXT) {
                self.check(member.value.place, &member.name, self.texts.check_expression(text));
                named.push((member.name.clone(), text.to_owned()));
            }
        }
        named
    }

    fn headers(&mut self, members: &Members<'_>) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        for member in self.free(members, "headers") {
            let name = member.name.to_ascii_lowercase();
            let own = matches!(
                name.as_str(),
                "idempotency-key"
                    | "keyturn-correlation-id"
                    | "host"
                    | "content-length"
                    | "transfer-encoding"
            );
            if own || name.parse::<HeaderName>().is_err() {
                self.sheet.note(member.place, format!("{:?} is no header that can be set here", member.name));
                continue;
            }
            if let Some(text) = self.template(&member.value, &member.name) {
                headers.push((name, text.to_owned()));
            }
        }
        headers
    }

    fn url(&mut self, members: &Members<'_>) -> Option<String> {
        let node = self.sheet.needed(members, "url")?;
        let text = self.template(node, "url")?;
        if !["http://", "https://", "{{"].iter().any(|start| text.starts_with(start)) {
            self.sheet.note(node.place, "\"url\" must begin with http:// or https://");
        }
        Some(text.to_owned())
    }

    fn shape(&mut self, node: &Node) -> Shape {
        match &node.kind {
            Kind::Text(text) => {
                let shape = Shape::of(text);
                let checked = match &shape {
                    Shape::Value(expression) => self.texts.check_expression(expression),
                    Shape::Text(template) => self.texts.check_template(template),
                    _ => Ok(()),
                };
                self.check(node.place, "the text", checked);
                shape
            }
            Kind::List(items) => Shape::List(items.iter().map(|item| self.shape(item)).collect()),
            Kind::Map(members) => Shape::Map(
                members.iter().map(|member| (member.name.clone(), self.shape(&member.value))).collect(),
            ),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => Shape::Plain(node.value()),
        }
    }

    fn answer(&mut self, members: &Members<'_>) -> Answer {
        let Some(node) = members.get("answer") else { return Answer::default() };
        let known = ["done", "in_progress", "failed", "error", "poll", "outputs"];
        let answer = self.sheet.members(node, "answer", &known);
        Answer {
            done: self.expression(&answer, "done"),
            in_progress: self.expression(&answer, "in_progress"),
            failed: self.expression(&answer, "failed"),
            error: self.expression(&answer, "error"),
            poll: self.expression(&answer, "poll"),
            outputs: self.named_expressions(&answer, "outputs"),
        }
    }

    fn call(&mut self, node: &Node, what: &str) -> Option<CallPlan> {
        let members = self.sheet.members(node, what, &["method", "url", "headers", "body", "answer"]);
        let method = match members.get("method") {
            None => Some(Method::POST),
            Some(node) => {
                let text = self.sheet.text(node, "method", 10)?;
                let known = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
                let method = known.into_iter().find(|method| method.as_str() == text);
                if method.is_none() {
                    self.sheet.note(node.place, "\"method\" must be POST, PUT, PATCH or DELETE");
                }
                method
            }
        };
        let (url, headers) = (self.url(&members), self.headers(&members));
        let body = members.get("body").map(|node| self.shape(node));
        let answer = self.answer(&members);
        Some(CallPlan { method: method?, url: url?, headers, body, answer })
    }

    fn look(&mut self, node: &Node) -> Option<LookPlan> {
        let known = ["url", "headers", "absent", "ours", "done", "in_progress", "outputs"];
        let members = self.sheet.members(node, "observe", &known);
        self.sheet.needed(&members, "ours");
        let (url, headers) = (self.url(&members), self.headers(&members));
        let ours = self.expression(&members, "ours");
        let (absent, done) = (self.expression(&members, "absent"), self.expression(&members, "done"));
        let in_progress = self.expression(&members, "in_progress");
        let outputs = self.named_expressions(&members, "outputs");
        Some(LookPlan { url: url?, headers, absent, ours: ours?, done, in_progress, outputs })
    }

    fn secrets(&mut self, members: &Members<'_>) -> NamedSecrets {
        let mut secrets = BTreeMap::new();
        for member in self.free(members, "secrets") {
            if let Some(source) = self.secret(&member.value, &member.name) {
                secrets.insert(member.name.clone(), source);
            }
        }
        NamedSecrets(secrets)
    }

    fn secret(&mut self, node: &Node, name: &str) -> Option<Source> {
        let members = self.sheet.members(node, name, &["env", "file"]);
        match (members.get("env"), members.get("file")) {
            (Some(env), None) => {
                let text = self.sheet.text(env, "env", 100)?;
                if text.starts_with("KEYTURN_") {
                    self.sheet
                        .note(env.place, "variables that begin with KEYTURN_ are the portal's own settings");
                }
                Some(Source::Environment(text.to_owned()))
            }
            (None, Some(file)) => {
                let text = self.sheet.text(file, "file", 1000)?;
                Some(Source::File(PathBuf::from(text)))
            }
            _ => {
                if matches!(node.kind, Kind::Map(_)) {
                    self.sheet.note(node.place, format!("{name:?} must have exactly one of env and file"));
                }
                None
            }
        }
    }

    fn span(
        &mut self,
        members: &Members<'_>,
        name: &str,
        longest: Duration,
        otherwise: Duration,
    ) -> Duration {
        span(self.sheet, members, name, longest).unwrap_or(otherwise)
    }

    /// Something for each action that the offering has, and for nothing else.
    fn actions<T>(
        &mut self,
        members: &Members<'_>,
        does: &Does<'_>,
        mut read: impl FnMut(&mut Self, &Node, &str) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let mut actions = BTreeMap::new();
        for member in self.free(members, "actions") {
            if !does.actions.contains(&member.name.as_str()) {
                self.sheet.note(member.place, format!("the offering has no action {:?}", member.name));
            }
            if let Some(one) = read(self, &member.value, &member.name) {
                actions.insert(member.name.clone(), one);
            }
        }
        for action in &does.actions {
            if !self.free(members, "actions").iter().any(|member| member.name == *action) {
                self.sheet.note(members.place, format!("\"actions\" must say how {action:?} is done"));
            }
        }
        actions
    }

    fn update_fits(&mut self, members: &Members<'_>, does: &Does<'_>) {
        match (members.get("update"), does.updates) {
            (None, true) => {
                self.sheet
                    .note(members.place, "the offering says \"updates: true\", so this needs \"update\"");
            }
            (Some(node), false) => {
                self.sheet.note(node.place, "\"update\" needs \"updates: true\" in the offering");
            }
            _ => {}
        }
    }
}

/// Reads `http`.
pub(super) fn http(sheet: &mut Sheet, node: &Node, does: &Does<'_>) -> Option<Plan> {
    let known = [
        "secrets",
        "idempotent",
        "callback",
        "call_timeout",
        "look_again",
        "settled_after",
        "apply",
        "update",
        "actions",
        "destroy",
        "stop",
        "poll",
        "observe",
    ];
    let members = sheet.members(node, "http", &known);
    let mut reader = Reader { sheet, texts: Texts::default() };
    let secrets = reader.secrets(&members);
    let idempotent = reader.sheet.flag(&members, "idempotent");
    let (by_callback, shared) = callback(&mut reader, &members, &secrets);
    let call_within = reader.span(&members, "call_timeout", LONGEST_CALL, Duration::from_secs(30));
    let look_again = reader.span(&members, "look_again", LONGEST_LOOK, Duration::from_secs(5));
    let settled_after = reader.span(&members, "settled_after", LONGEST_CALL, Duration::from_secs(2));
    let apply = reader.sheet.needed(&members, "apply").and_then(|node| reader.call(node, "apply"));
    let destroy = reader.sheet.needed(&members, "destroy").and_then(|node| reader.call(node, "destroy"));
    let update = members.get("update").and_then(|node| reader.call(node, "update"));
    reader.update_fits(&members, does);
    let actions = reader.actions(&members, does, Reader::call);
    let stop = members.get("stop").and_then(|node| reader.call(node, "stop"));
    let poll = members.get("poll").map(|node| {
        let members = reader.sheet.members(node, "poll", &["headers", "answer"]);
        PollPlan { headers: reader.headers(&members), answer: reader.answer(&members) }
    });
    let observe = members.get("observe").and_then(|node| reader.look(node));
    let plan = Plan {
        secrets,
        shared,
        idempotent,
        by_callback,
        call_within,
        patience: does.timeout,
        look_again,
        settled_after,
        apply: apply?,
        update,
        actions,
        destroy: destroy?,
        stop,
        poll,
        observe,
    };
    ends_are_seen(reader.sheet, &members, &plan);
    Some(plan)
}

fn callback(reader: &mut Reader<'_>, members: &Members<'_>, secrets: &NamedSecrets) -> (bool, Vec<String>) {
    let Some(node) = members.get("callback") else { return (false, Vec::new()) };
    if !matches!(node.kind, Kind::Map(_)) {
        return (reader.sheet.flag(members, "callback"), Vec::new());
    }
    let inner = reader.sheet.members(node, "callback", &["secrets"]);
    let mut shared = Vec::new();
    match inner.get("secrets").map(|node| (node, &node.kind)) {
        Some((_, Kind::List(items))) if (1..=2).contains(&items.len()) => {
            for item in items {
                if let Some(name) = reader.sheet.text(item, "secrets", 100) {
                    if !secrets.0.contains_key(name) {
                        reader.sheet.note(item.place, format!("there is no secret {name:?}"));
                    }
                    shared.push(name.to_owned());
                }
            }
        }
        Some((node, _)) => {
            reader
                .sheet
                .note(node.place, "\"secrets\" must name one secret, or two while they are exchanged");
        }
        None => {}
    }
    (true, shared)
}

/// Work that goes on there needs a way to hear of its end.
fn ends_are_seen(sheet: &mut Sheet, members: &Members<'_>, plan: &Plan) {
    let calls = [Some(&plan.apply), plan.update.as_ref(), Some(&plan.destroy)];
    let calls = calls.into_iter().flatten().chain(plan.actions.values());
    for call in calls {
        let sees = plan.poll.is_some() || plan.by_callback || plan.observe.is_some();
        if call.answer.in_progress.is_some() && !sees {
            let why =
                "an answer may say \"in_progress\", so this needs \"poll\", \"callback\" or \"observe\"";
            return sheet.note(members.place, why);
        }
        if call.answer.poll.is_some() && plan.poll.is_none() {
            let why = "an answer may say where one asks (\"poll\"), so this needs \"poll\" to say how";
            return sheet.note(members.place, why);
        }
    }
}

/// Reads `kestra`.
pub(super) fn kestra(sheet: &mut Sheet, node: &Node, does: &Does<'_>) -> Option<kestra::Plan> {
    let known = [
        "url",
        "tenant",
        "token",
        "secrets",
        "callback",
        "namespace",
        "call_timeout",
        "look_again",
        "search_again",
        "apply",
        "update",
        "actions",
        "destroy",
    ];
    let members = sheet.members(node, "kestra", &known);
    let mut reader = Reader { sheet, texts: Texts::default() };
    let url = reader.sheet.needed_text(&members, "url", 1000).map(str::to_owned);
    if let (Some(url), Some(node)) = (&url, members.get("url"))
        && !["http://", "https://"].iter().any(|start| url.starts_with(start))
    {
        reader.sheet.note(node.place, "\"url\" must begin with http:// or https://");
    }
    let namespace = reader.sheet.needed_text(&members, "namespace", 200).map(str::to_owned);
    let tenant = match members.get("tenant") {
        Some(node) => reader.sheet.text(node, "tenant", 100).map(str::to_owned),
        None => Some("main".to_owned()),
    };
    let mut secrets = reader.secrets(&members);
    if let Some(source) = members.get("token").and_then(|node| reader.secret(node, "token")) {
        secrets.0.insert("token".to_owned(), source);
    }
    // Whether a flow reports is its own matter: it is followed all the same.
    let (_, shared) = callback(&mut reader, &members, &secrets);
    let call_within = reader.span(&members, "call_timeout", LONGEST_CALL, Duration::from_secs(30));
    let look_again = reader.span(&members, "look_again", LONGEST_LOOK, Duration::from_secs(5));
    let search_again = reader.span(&members, "search_again", LONGEST_CALL, Duration::from_secs(5));
    let flow = |reader: &mut Reader<'_>, node: &Node, name: &str| {
        let members = reader.sheet.members(node, name, &["flow", "inputs"]);
        let id = reader.sheet.needed_text(&members, "flow", 200).map(str::to_owned);
        let mut inputs = Vec::new();
        for member in reader.free(&members, "inputs") {
            if !member.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)) {
                reader.sheet.note(member.place, format!("{:?} is no name of an input", member.name));
            }
            inputs.push((member.name.clone(), reader.shape(&member.value)));
        }
        Some(kestra::Flow { namespace: namespace.clone()?, id: id?, inputs })
    };
    let apply = reader.sheet.needed(&members, "apply").and_then(|node| flow(&mut reader, node, "apply"));
    let destroy =
        reader.sheet.needed(&members, "destroy").and_then(|node| flow(&mut reader, node, "destroy"));
    let update = members.get("update").and_then(|node| flow(&mut reader, node, "update"));
    reader.update_fits(&members, does);
    let actions = reader.actions(&members, does, flow);
    Some(kestra::Plan {
        url: url?,
        tenant: tenant?,
        secrets,
        shared,
        call_within,
        patience: does.timeout,
        look_again,
        search_again,
        apply: apply?,
        update,
        actions,
        destroy: destroy?,
    })
}

#[cfg(test)]
mod tests;
