//! Lists of requests as pages: each row lies in exactly one day of every zone, and views are saved by plain forms.

use super::support::{
    ALPHA, PASSWORD, World,
    browser::{Browser, shown},
    fast, fresh,
};
use domain::time::Moment;
use portal::{
    clock::{Clock, SystemClock},
    zone::Zone,
};
use serde_json::{Value, json};

/// Whether a page lists a request of this name.
fn lists(page: &str, name: &str) -> bool {
    page.contains(&format!(">{name}</a>"))
}

/// Makes a request that was accepted at a moment.
async fn made_at(world: &World, name: &str, at: &str) {
    let id = world.ann.post(ALPHA, name, &fast(name, json!({}))).await.is(202).id();
    world.ann.ended(&id).await;
    let at: Moment = at.parse().unwrap();
    let database = rusqlite::Connection::open(world.server.home.database()).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let id = id.replace('-', "");
    let met = database
        .execute("UPDATE request SET created_at = ?1 WHERE hex(id) = upper(?2)", (at.millis(), id))
        .unwrap();
    assert_eq!(met, 1);
}

#[tokio::test]
async fn each_request_lies_in_exactly_one_day_of_every_zone() {
    let world = World::at(super::support::Home::on_sqlite(&[]));
    // The last and the first millisecond of a day in each zone, one of them where the clock changes on it.
    let zones = [
        (
            "UTC",
            "2026-06-10",
            "2026-06-09T23:59:59.999Z",
            "2026-06-10T00:00:00.000Z",
            "2026-06-10T23:59:59.999Z",
        ),
        (
            "Pacific/Kiritimati",
            "2026-06-12",
            "2026-06-11T09:59:59.999Z",
            "2026-06-11T10:00:00.000Z",
            "2026-06-12T09:59:59.999Z",
        ),
        (
            "Pacific/Pago_Pago",
            "2026-06-14",
            "2026-06-14T10:59:59.999Z",
            "2026-06-14T11:00:00.000Z",
            "2026-06-15T10:59:59.999Z",
        ),
        (
            "Asia/Kolkata",
            "2026-06-16",
            "2026-06-15T18:29:59.999Z",
            "2026-06-15T18:30:00.000Z",
            "2026-06-16T18:29:59.999Z",
        ),
        (
            "Europe/Berlin",
            "2026-10-25",
            "2026-10-24T21:59:59.999Z",
            "2026-10-24T22:00:00.000Z",
            "2026-10-25T22:59:59.999Z",
        ),
        (
            "Europe/Berlin",
            "2026-03-29",
            "2026-03-28T22:59:59.999Z",
            "2026-03-28T23:00:00.000Z",
            "2026-03-29T21:59:59.999Z",
        ),
    ];
    for (number, (.., before, first, last)) in zones.iter().enumerate() {
        made_at(&world, &format!("before-{number}"), before).await;
        made_at(&world, &format!("first-{number}"), first).await;
        made_at(&world, &format!("last-{number}"), last).await;
    }
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    for (number, (zone, day, ..)) in zones.iter().enumerate() {
        let of_day = format!("/teams/alpha/requests?time=days&from={day}&to={day}&zone={zone}&q=-{number}");
        let page = browser.get(&of_day).await.is(200);
        let page = shown(&page);
        assert!(
            lists(&page, &format!("first-{number}")) && lists(&page, &format!("last-{number}")),
            "{zone}"
        );
        assert!(!lists(&page, &format!("before-{number}")), "{zone}");
        assert!(page.contains(&format!(">{zone}</strong>")), "the zone is named");
        let until = format!("/teams/alpha/requests?to={day}&zone={zone}&q=-{number}");
        let page = browser.get(&until).await.is(200);
        assert!(
            ["before", "first", "last"].iter().all(|name| lists(&shown(&page), &format!("{name}-{number}")))
        );
    }
}

/// Where a page's link to a file leads.
fn export(page: &str, format: &str) -> String {
    let links =
        page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&"));
    let mut links =
        links.filter(|link| link.starts_with("/api/") && link.contains(&format!("format={format}")));
    links.next().unwrap_or_else(|| panic!("no export as {format}: {page}"))
}

/// The names in a file of one JSON object a line.
fn named(file: &str) -> Vec<String> {
    let name = |line: &str| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned();
    file.lines().map(name).collect()
}

#[tokio::test]
async fn today_and_yesterday_are_those_of_the_zone_for_list_and_file() {
    let world = World::at(super::support::Home::on_sqlite(&[]));
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    for (number, zone) in
        ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kolkata", "UTC"].iter().enumerate()
    {
        let rules = Zone::read(Some(zone)).unwrap();
        // Again where the day ended meanwhile.
        loop {
            let today = rules.day_of(SystemClock::default().now());
            let (tag, begun) = (format!("{number}-{}", fresh("x")), rules.begin(today));
            let before = Moment::from_millis(begun.millis() - 1);
            made_at(&world, &format!("first-{tag}"), &begun.to_string()).await;
            made_at(&world, &format!("before-{tag}"), &before.to_string()).await;
            let mut seen = Vec::new();
            for (time, name) in [("today", "first"), ("yesterday", "before")] {
                let list = format!("/requests?time={time}&zone={zone}&q=-{tag}");
                let page = shown(&browser.get(&list).await.is(200));
                let listed = ["first", "before"].map(|name| lists(&page, &format!("{name}-{tag}")));
                let file = browser.get(&export(&page, "ndjson")).await.is(200).text();
                seen.push((name, listed, named(&file)));
            }
            if rules.day_of(SystemClock::default().now()) != today {
                continue;
            }
            for (name, listed, file) in seen {
                assert_eq!(listed, ["first", "before"].map(|one| one == name), "{name} in {zone}");
                assert_eq!(file, [format!("{name}-{tag}")], "{zone}");
            }
            break;
        }
    }
}

#[tokio::test]
async fn an_hour_that_comes_twice_keeps_its_order_in_list_and_file() {
    let world = World::at(super::support::Home::on_sqlite(&[]));
    for (name, at) in [
        ("summer-early", "2026-10-25T00:10:00.000Z"),
        ("summer-late", "2026-10-25T00:50:00.000Z"),
        ("winter-early", "2026-10-25T01:10:00.000Z"),
        ("winter-late", "2026-10-25T01:50:00.000Z"),
    ] {
        made_at(&world, name, at).await;
    }
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let day = "/requests?time=days&from=2026-10-25&to=2026-10-25&zone=Europe/Berlin";
    let page = shown(&browser.get(day).await.is(200));
    let places: Vec<usize> = ["winter-late", "winter-early", "summer-late", "summer-early"]
        .iter()
        .map(|name| page.find(&format!(">{name}</a>")).unwrap())
        .collect();
    assert!(places.is_sorted(), "newest first, by moments and not by the clock on the wall");
    let file = browser.get(&format!("{}&zone=Europe/Berlin", export(&page, "csv"))).await.is(200).text();
    let lines: Vec<&str> = file.lines().skip(1).collect();
    for (line, time) in lines.iter().zip([
        "2026-10-25T02:50:00.000+01:00",
        "2026-10-25T02:10:00.000+01:00",
        "2026-10-25T02:50:00.000+02:00",
        "2026-10-25T02:10:00.000+02:00",
    ]) {
        assert!(line.contains(&format!("\"{time}\"")), "{time}: {line}");
    }
    assert_eq!(lines.len(), 4);
}

#[tokio::test]
async fn a_form_leads_to_the_address_without_what_nobody_filled_in() {
    let world = World::start();
    let mut browser = Browser::new(&world.server);
    browser.log_in("ann", PASSWORD).await;
    let sent = "/requests?q=&filters[state][IN]=failed&filters[state][IN]=unknown&label=env%3Aprod&time=&zone=Asia%2FKolkata";
    let answer = browser.get(sent).await.is(303);
    let tidy = answer.header("location").unwrap().to_owned();
    assert_eq!(
        tidy,
        "/requests?filters%5Bstate%5D%5BIN%5D=failed%2Cunknown&filters%5Blabels%5D%5BEQUALS%5D%5Benv%5D=prod"
    );
    browser.get(&tidy).await.is(200);
    for misread in
        ["filters[colour][EQUALS]=red", "time=soon", "from=yesterday", "zone=x&time=today", "label=x"]
    {
        let page = browser.get(&format!("/requests?{misread}")).await.is(400);
        assert!(page.text().contains("This filter is not understood"), "{misread}");
    }
}

#[tokio::test]
async fn views_are_saved_and_removed_by_plain_forms() {
    let world = World::start();
    let (mut ann, mut ben) = (Browser::new(&world.server), Browser::new(&world.server));
    ann.log_in("ann", PASSWORD).await;
    ben.log_in("ben", PASSWORD).await;
    let view = |page: &'static str, filter: &'static str| {
        [("page", page), ("filter", filter), ("name", "Mine & <yours>")]
    };
    let list = "/teams/alpha/requests";
    for _ in 0..2 {
        let answer = ann.post("/views", &view(list, "q=shop")).await.is(303);
        assert_eq!(answer.header("location"), Some("/teams/alpha/requests?q=shop"));
    }
    let page = ann.get(list).await.is(200);
    assert_eq!(shown(&page).matches("Mine &amp; &lt;yours&gt;</a>").count(), 1, "the same again is the same");
    let id = page.text().split("/views/").nth(1).unwrap().split('/').next().unwrap().to_owned();
    // Another team's list has no views for others, and nobody removes another's.
    ben.post("/views", &view(list, "q=shop")).await.is(303);
    ben.get(list).await.is(404);
    ben.post(&format!("/views/{id}/remove"), &[("page", "/requests")]).await.is(303);
    assert!(ann.get(list).await.text().contains(&id));
    for (page, filter) in [("/tokens", ""), ("//evil.example", ""), ("/requests", "colour=red")] {
        let refused = ann.post("/views", &view(page, filter)).await;
        assert!(matches!(refused.status, 400 | 404), "{page} {filter}: {}", refused.status);
    }
    ann.post_from("https://evil.example", "/views", &view(list, "q=x")).await.is(403);
    ann.post(&format!("/views/{id}/remove"), &[("page", list), ("filter", "q=shop")]).await.is(303);
    assert!(!ann.get(list).await.text().contains(&id));
    let mut nobody = Browser::new(&world.server);
    let answer = nobody.post("/views", &view(list, "q=shop")).await.is(303);
    assert!(answer.header("location").unwrap().starts_with("/login"));
}
