//! Changing, deleting and acting on a resource in a browser without script.

use super::support::{
    Answer, PASSWORD, World,
    browser::{Browser, hidden},
    eventually, fast, vm,
};
use serde_json::json;

const ONE: &str = "/teams/alpha/resources/fast/one";

/// A world in which `fast/one` is there, and a browser in which ann is logged in.
async fn with_one() -> (World, Browser) {
    let world = World::start();
    let id = world.ann.made(&fast("one", json!({ "note": "stays" }))).await;
    assert_eq!(world.ann.ended(&id).await["state"], "succeeded");
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    (world, browser)
}

/// A form about a resource as a page holds it.
struct Form {
    path: String,
    fields: Vec<(String, String)>,
}

impl Form {
    fn of(path: &str, page: &Answer) -> Self {
        let own = ["request_id", "sealed", "etag", "base"];
        let value = |name: &str| hidden(page, name).replace("&quot;", "\"").replace("&amp;", "&");
        let fields = own.iter().map(|name| ((*name).to_owned(), value(name))).collect();
        Self { path: path.to_owned(), fields }
    }

    async fn open(browser: &mut Browser, place: &str) -> Self {
        let path = format!("{ONE}{place}");
        let page = browser.get(&path).await.is(200);
        Self::of(&path, &page)
    }

    fn field(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).unwrap()
    }

    async fn send(&self, browser: &mut Browser, typed: &[(&str, &str)]) -> Answer {
        let own = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        browser.post(&self.path, &own.chain(typed.iter().copied()).collect::<Vec<_>>()).await
    }
}

fn place(answer: &Answer) -> String {
    answer.header("location").unwrap().to_owned()
}

#[tokio::test]
async fn a_form_changes_once_what_was_touched_in_it() {
    let (world, mut browser) = with_one().await;
    let form = Form::open(&mut browser, "/change").await;
    let typed = [("p.size", "large"), ("p.count", "1"), ("p.note", "stays")];
    let first = place(&form.send(&mut browser, &typed).await.is(303));
    assert_eq!(place(&form.send(&mut browser, &typed).await.is(303)), format!("{first}?repeat=1"));
    let request = world.ann.ended(first.strip_prefix("/requests/").unwrap()).await;
    assert_eq!((&request["patch"], &request["channel"]), (&json!({ "size": "large" }), &json!("form")));
    let now = world.ann.get(ONE).await.is(200).json();
    assert_eq!(now["version"], 2);
    assert_eq!(now["parameters"], json!({ "size": "large", "count": 1, "note": "stays" }));
    // Also long after, when the resource has moved on or is gone.
    let deleted = world.ann.delete(ONE, "delete").await.is(202);
    assert_eq!(world.ann.ended(&deleted.id()).await["state"], "succeeded");
    assert_eq!(place(&form.send(&mut browser, &typed).await.is(303)), format!("{first}?repeat=1"));
    let other = [("p.size", "small"), ("p.count", "9"), ("p.note", "stays")];
    let reused = form.send(&mut browser, &other).await;
    assert_ne!(reused.status, 303, "the same ID with something else is no repeat");
    // The form shares the guard with the API.
    let patch = json!({ "size": "large" });
    let repeat = world.ann.patch(ONE, form.field("request_id"), "\"x\"", &patch).await.is(202);
    assert_eq!(repeat.header("idempotency-replayed"), Some("true"));
}

#[tokio::test]
async fn a_stale_form_shows_both_versions_and_goes_on_only_when_asked() {
    let (world, mut browser) = with_one().await;
    let form = Form::open(&mut browser, "/change").await;
    let etag = world.ann.etag(ONE).await;
    let theirs = world.ada.patch(ONE, "theirs", &etag, &json!({ "count": 42 })).await.is(202);
    world.ada.ended(&theirs.id()).await;
    let typed = [("p.size", "large"), ("p.count", "1"), ("p.note", "mine")];
    let mut page = form.send(&mut browser, &typed).await.is(412);
    for _ in 0..2 {
        let text = page.text();
        for shown in [
            "The resource has changed since you looked",
            ">42<",
            ">mine<",
            ">stays<",
            ">not touched<",
            "on_top_of",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        let again = Form::of(&form.path, &page);
        assert_eq!(again.fields[0], form.fields[0], "the form keeps its ID");
        assert_eq!((again.field("etag"), again.field("base")), (form.field("etag"), form.field("base")));
        page = again.send(&mut browser, &typed).await.is(412);
    }
    assert_eq!(world.ann.get(ONE).await.json()["version"], 2, "asking again is no answer");
    let now = world.ann.etag(ONE).await;
    let typed = [&typed[..], &[("on_top_of", now.as_str())]].concat();
    let done = place(&form.send(&mut browser, &typed).await.is(303));
    world.ann.ended(done.strip_prefix("/requests/").unwrap()).await;
    let now = world.ann.get(ONE).await.json();
    assert_eq!(now["parameters"], json!({ "size": "large", "count": 42, "note": "mine" }));
}

#[tokio::test]
async fn a_relative_action_of_a_form_adds_once() {
    let (world, mut browser) = with_one().await;
    let form = Form::open(&mut browser, "/actions/add-disks").await;
    let wrong = form.send(&mut browser, &[("p.count", "many")]).await.is(422);
    assert!(wrong.text().contains("must be of the type integer"), "{}", wrong.text());
    let first = place(&form.send(&mut browser, &[("p.count", "2")]).await.is(303));
    assert_eq!(
        place(&form.send(&mut browser, &[("p.count", "2")]).await.is(303)),
        format!("{first}?repeat=1")
    );
    world.ann.ended(first.strip_prefix("/requests/").unwrap()).await;
    assert_eq!(world.ann.get(ONE).await.json()["parameters"]["count"], 3);
}

#[tokio::test]
async fn a_form_deletes_once_and_only_what_was_named() {
    let (world, mut browser) = with_one().await;
    let (form, late) = (Form::open(&mut browser, "/delete").await, Form::open(&mut browser, "/delete").await);
    let wrong = form.send(&mut browser, &[("confirm", "two")]).await.is(422);
    assert!(wrong.text().contains("type one"), "{}", wrong.text());
    let typed = [("confirm", "one")];
    let first = place(&form.send(&mut browser, &typed).await.is(303));
    assert_eq!(place(&form.send(&mut browser, &typed).await.is(303)), format!("{first}?repeat=1"));
    world.ann.ended(first.strip_prefix("/requests/").unwrap()).await;
    assert_eq!(place(&form.send(&mut browser, &typed).await.is(303)), format!("{first}?repeat=1"));
    assert_eq!(place(&late.send(&mut browser, &typed).await.is(303)), format!("{first}?existing=1"));
    browser.get(ONE).await.is(404);
    browser.get(&format!("{ONE}/delete")).await.is(404);
    let never = browser.post("/teams/alpha/resources/fast/never/delete", &[("confirm", "never")]).await;
    assert_ne!(never.status, 303, "{}", never.text());
}

#[tokio::test]
async fn who_comes_back_to_the_form_of_what_is_deleted_learns_what_became_of_it() {
    let (world, mut browser) = with_one().await;
    let delete = world.ann.delete(ONE, "delete").await.is(202).id();
    assert_eq!(world.ann.ended(&delete).await["state"], "succeeded");
    for place in ["/delete", "/change", ""] {
        let page = browser.get(&format!("{ONE}{place}")).await.is(404).text();
        assert!(
            page.contains(&format!("/requests/{delete}")) && page.contains("not there any more"),
            "{page}"
        );
    }
    browser.get(&format!("{}/delete", ONE.replace("one", "never"))).await.is(404);
    browser.log_in("ben", PASSWORD).await;
    let other = browser.get(&format!("{ONE}/delete")).await.is(404).text();
    assert!(!other.contains(&delete));
}

#[tokio::test]
async fn the_pages_of_what_nobody_can_tell_of_lead_to_who_decides() {
    let (world, mut browser) = with_one().await;
    let id = world.ann.made(&vm("lost", json!({ "behaviour": "cannot-tell" }))).await;
    eventually("nobody can tell", async || {
        let state = world.ann.get(&format!("/requests/{id}")).await.json()["state"].clone();
        (state == "unknown").then_some(())
    })
    .await;
    for page in ["/teams/alpha/resources/vm/lost", "/teams/alpha/resources"] {
        let text = browser.get(page).await.is(200).text();
        assert!(text.contains("Nobody can tell whether it was "), "{text}");
        let way = format!("<a href=\"/requests/{id}\">Somebody has to decide");
        assert!(text.contains(&way), "{text}");
        assert!(!text.contains("It is being made."), "{text}");
    }
}
