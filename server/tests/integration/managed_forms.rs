//! The forms about hooks and about who is told, in a browser without script: what was typed is not lost by a refusal, nor
//! by a session that ended meanwhile, and shown to nobody else.

use super::support::{
    Answer, Home, PASSWORD, World,
    browser::{Browser, hidden, shown},
};
use serde_json::{Value, json};

const HOOKS: &str = "/teams/alpha/hooks";
const TOLD: &str = "/teams/alpha/notifications";

/// An offering that takes a secret.
const SHEET: &str = "
title: Mailbox
description: Takes a secret.
category: Tests
version: '1'
parameters:
  type: object
  additionalProperties: false
  properties:
    note: { type: string, title: Note }
    password: { type: string, title: Password, format: password }
provisioner:
  fake: {}
";

/// One form: where it is opened, what its page is called, what is typed, and what of that is seen when it comes back.
struct Form {
    opened_at: String,
    path: String,
    typed: Vec<(&'static str, &'static str)>,
    seen: Vec<&'static str>,
}

impl Form {
    fn new(
        opened_at: &str,
        path: &str,
        typed: &[(&'static str, &'static str)],
        seen: &[&'static str],
    ) -> Self {
        Self {
            opened_at: opened_at.to_owned(),
            path: path.to_owned(),
            typed: typed.to_vec(),
            seen: seen.to_vec(),
        }
    }

    /// What is posted, once the form was opened.
    async fn open(&self, browser: &mut Browser) -> Vec<(&'static str, String)> {
        let page = browser.get(&self.opened_at).await.is(200);
        // What is posted to the page's own address makes a browser forget the page, and with it the form's ID.
        assert!(page.text().contains(&format!(" action=\"{}\"", sent_to(&self.path))), "{}", page.text());
        own(&page)
            .into_iter()
            .chain(self.typed.iter().map(|(name, text)| (*name, (*text).to_owned())))
            .collect()
    }
}

/// What the form on a page is sent with of its own: its ID, and who opened it. Other forms there have IDs of theirs.
fn own(page: &Answer) -> [(&'static str, String); 2] {
    let text = page.text();
    let form = text.split("<form").find(|form| form.contains("name=\"sealed\"")).unwrap();
    ["request_id", "sealed"].map(|name| {
        let input = form.split("<input").find(|input| input.contains(&format!("name=\"{name}\""))).unwrap();
        let value = input.split_once(" value=\"").unwrap().1.split('"').next().unwrap();
        (name, value.to_owned())
    })
}

/// Where the form of a page is posted to.
fn sent_to(path: &str) -> String {
    format!("{path}?send")
}

async fn send(browser: &mut Browser, path: &str, fields: &[(&str, String)]) -> Answer {
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, text)| (*name, text.as_str())).collect();
    browser.post(&sent_to(path), &fields).await
}

/// Logs in on the page to which a form led whose session was over; the page that follows.
async fn log_in_behind(browser: &mut Browser, sent: &Answer, name: &str) -> Answer {
    let login = browser.get(sent.header("location").unwrap()).await.is(200);
    assert!(!login.text().contains("quokka"), "{}", login.text());
    let (waiting, next) = (hidden(&login, "sealed"), hidden(&login, "next"));
    let form = [("name", name), ("password", PASSWORD), ("sealed", &*waiting), ("next", &*next)];
    let place = browser.post("/login", &form).await.is(303);
    browser.get(place.header("location").unwrap()).await.is(200)
}

/// A world with two owners of team alpha, one hook and one address where the team is told.
async fn managed() -> (World, String, String) {
    let home = Home::new(&[("KEYTURN_CATALOG", "catalog")]);
    let folder = home.path().join("catalog/mailbox");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("offering.yaml"), SHEET).unwrap();
    let world = World::at(home);
    for name in ["olga", "otto"] {
        world.server.home.user(name, "member", Some("alpha:owner"), Some(PASSWORD));
    }
    let hook = json!({
        "title": "orders", "offering": "mailbox", "signature": "bearer", "name": "{{ payload.name }}",
        "parameters": { "password": "{{ payload.stands }}" },
    });
    let hook = world.ada.post(HOOKS, "hook", &hook).await.is(201).id();
    let told = json!({ "label": "ops", "url": "https://example.org/", "events": ["request.failed"] });
    let told = world.ada.post(TOLD, "told", &told).await.is(201).id();
    (world, format!("{HOOKS}/{hook}"), format!("{TOLD}/{told}"))
}

/// All that owners look after, as the API shows it.
async fn all(world: &World) -> [Value; 2] {
    [world.ada.get(HOOKS).await.is(200).json(), world.ada.get(TOLD).await.is(200).json()]
}

fn forms(hook: &str, told: &str) -> Vec<Form> {
    let mapping = [
        ("offering", "mailbox"),
        ("title", "quokka title"),
        ("signature", "bearer"),
        ("name", "{{ payload.quokka_name }}"),
        ("p.note", "quokka note"),
        ("p.password", "quokka secret"),
        ("labels", "quokka: label"),
        ("sample", "{\"quokka_name\": \"quokka-sample\"}"),
    ];
    let seen = ["quokka title", "payload.quokka_name", "quokka note", "quokka: label", "quokka-sample"];
    let edited: Vec<_> = mapping.into_iter().chain([("version", "1")]).collect();
    let ops =
        [("label", "quokka label"), ("url", "https://example.org/quokka"), ("event.request.unknown", "on")];
    let ops_seen = ["quokka label", "https://example.org/quokka"];
    vec![
        Form::new(&format!("{HOOKS}/new?offering=mailbox"), &format!("{HOOKS}/new"), &mapping, &seen),
        Form::new(&format!("{hook}/edit"), &format!("{hook}/edit"), &edited, &seen),
        Form::new(TOLD, TOLD, &ops, &ops_seen),
        Form::new(told, told, &ops, &ops_seen),
    ]
}

#[tokio::test]
async fn a_session_that_ended_loses_no_form_about_a_hook_or_who_is_told_and_runs_nothing() {
    let (world, hook, told) = managed().await;
    for form in forms(&hook, &told) {
        let path = &form.path;
        let before = all(&world).await;
        let mut browser = Browser::new(&world.server);
        browser.log_in("olga", PASSWORD).await;
        let fields = form.open(&mut browser).await;
        browser.post("/logout", &[]).await.is(303);

        // Somebody else logs in, who may look after the same things, and sees nothing of it.
        browser.cookie = None;
        let sent = send(&mut browser, path, &fields).await.is(303);
        assert!(sent.header("location").unwrap().starts_with("/login?next="), "{path}");
        let other = log_in_behind(&mut browser, &sent, "otto").await;
        assert!(!other.text().contains("quokka"), "{path}: {}", other.text());
        // Nor is what olga opened sent as otto, who is told so.
        let elsewhere = send(&mut browser, path, &fields).await.is(303);
        assert_eq!(elsewhere.header("location"), Some(path.as_str()));
        let page = browser.get(path).await.is(200);
        assert!(page.text().contains("opened by somebody else") && !page.text().contains("quokka"), "{path}");

        // Who filled it in finds it, under the same ID, without what is secret.
        browser.cookie = None;
        let sent = send(&mut browser, path, &fields).await.is(303);
        let back = log_in_behind(&mut browser, &sent, "olga").await;
        let text = shown(&back).replace("&quot;", "\"");
        assert!(text.contains("Your form is kept"), "{path}: {text}");
        assert_eq!(own(&back)[0], fields[0], "{path}");
        for words in &form.seen {
            assert!(text.contains(words), "{path} lost {words}: {text}");
        }
        assert!(!text.contains("quokka secret"), "{path}");
        if path.ends_with("/edit") {
            assert!(text.contains("payload.stands"), "what stands there is not lost with it: {text}");
        }
        if path.starts_with(TOLD) {
            assert!(
                ticked(&back, "event.request.unknown") && !ticked(&back, "event.request.failed"),
                "{path}"
            );
        }
        assert_eq!(all(&world).await, before, "{path}: nothing ran");

        // Sent once more it is done, once.
        let mut fields = fields;
        fields[1] = own(&back)[1].clone();
        let done = send(&mut browser, path, &fields).await.is(303);
        let after = all(&world).await;
        assert_ne!(after, before, "{path}");
        assert_eq!(
            send(&mut browser, path, &fields).await.is(303).header("location"),
            done.header("location")
        );
        assert_eq!(all(&world).await, after, "{path}");
    }
}

/// Whether a box of a page is ticked.
fn ticked(page: &Answer, name: &str) -> bool {
    let text = page.text();
    let input = text.split("<input").find(|input| input.contains(&format!("name=\"{name}\""))).unwrap();
    input.split('>').next().unwrap().contains("checked")
}

#[tokio::test]
async fn a_refused_form_about_a_hook_or_who_is_told_keeps_what_was_typed_and_its_id() {
    let (world, hook, told) = managed().await;
    let mut browser = Browser::new(&world.server);
    browser.log_in("olga", PASSWORD).await;
    for form in forms(&hook, &told) {
        let path = &form.path;
        let before = all(&world).await;
        let mut fields = form.open(&mut browser).await;
        let needed = if path.starts_with(HOOKS) { "title" } else { "label" };
        let place = fields.iter().position(|(name, _)| *name == needed).unwrap();
        let right = std::mem::replace(&mut fields[place].1, " ".into());
        let page = send(&mut browser, path, &fields).await.is(422);
        assert_eq!(own(&page)[0], fields[0], "{path}");
        let text = shown(&page).replace("&quot;", "\"");
        for words in form.seen.iter().filter(|words| **words != right) {
            assert!(text.contains(words), "{path} lost {words}: {text}");
        }
        assert_eq!(all(&world).await, before, "{path}");
        fields[place].1 = right;
        send(&mut browser, path, &fields).await.is(303);
        // The same form with something else in it is no repeat. Sent once more it is a form of its own.
        "https://example.org/other".clone_into(&mut fields[place].1);
        let after = all(&world).await;
        let page = send(&mut browser, path, &fields).await.is(422);
        assert_ne!(own(&page)[0], fields[0], "{path}");
        assert_eq!(all(&world).await, after, "{path}");
    }
}
