//! Searching over HTTP: the grammar, who sees what, pages, and exports that hold what the list shows.

use super::support::{ALPHA, Answer, Api, Home, World, eventually, fast, fresh};
use domain::time::Moment;
use serde_json::{Value, json};

/// An address' query, encoded.
fn query(pairs: &[(&str, &str)]) -> String {
    let encoded = |text: &str| -> String {
        text.bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    };
    pairs
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect::<Vec<_>>()
        .join("&")
}

async fn file(api: &Api, path: &str, accept: &str) -> Answer {
    Answer::of(api.call("GET", path).header("Accept", accept)).await.is(200)
}

/// The records of a CSV file, as RFC 4180 says.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut letters) = (false, text.chars().peekable());
    while let Some(letter) = letters.next() {
        match (quoted, letter) {
            (true, '"') if letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            (_, '"') => quoted = !quoted,
            (false, ',') => record.push(std::mem::take(&mut cell)),
            (false, '\r') => {
                assert_eq!(letters.next(), Some('\n'), "a line ends with CR LF");
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            (_, other) => cell.push(other),
        }
    }
    assert!(!quoted && record.is_empty() && cell.is_empty(), "the file ends with a whole record");
    records
}

/// The cells of one column.
fn column(records: &[Vec<String>], name: &str) -> Vec<String> {
    let place = records[0].iter().position(|head| head == name).unwrap();
    records[1..].iter().map(|record| record[place].clone()).collect()
}

/// The IDs of every page of a list.
async fn listed(api: &Api, path: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("{path}&size=100{cursor}")).await.is(200).json();
        ids.extend(
            page["results"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

async fn many(world: &World, count: usize, marked: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    for part in 0..16 {
        let ann = world.ann.clone();
        tasks.spawn(async move {
            for number in (0..count).filter(|number| number % 16 == part) {
                let mut body = fast(&format!("n-{number}"), json!({ "count": 1 + number % 100 }));
                if number < marked {
                    body["labels"] = json!({ "pick": "yes" });
                }
                ann.post(ALPHA, &fresh("many"), &body).await.is(202);
            }
        });
    }
    tasks.join_all().await;
}

#[tokio::test]
async fn a_script_asks_once_whether_its_key_has_succeeded() {
    let world = World::start();
    let asked = "filters[labels][EQUALS][system.correlationId]=payment-ORD-123&filters[offering][EQUALS]=fast\
                 &filters[action][EQUALS]=create&filters[state][IN]=SUCCESS&size=1";
    for path in [format!("{ALPHA}?{asked}"), format!("/requests?{asked}")] {
        let answer = world.ann.get(&path).await.is(200);
        assert!(answer.text().contains("\"total\":0"), "{}", answer.text());
    }
    let mut body = fast("one", json!({}));
    body["correlation_id"] = "payment-ORD-123".into();
    let id = world.ann.made(&body).await;
    world.ann.ended(&id).await;
    let answer = world.ann.get(&format!("{ALPHA}?{asked}")).await.is(200);
    assert!(answer.text().contains("\"total\":1") && answer.text().contains(&id), "{}", answer.text());
    // What was asked for once more under another correlation ID is found by that one too.
    body["correlation_id"] = "payment-ORD-124".into();
    world.ann.post(ALPHA, "again", &body).await.is(200);
    let again = asked.replace("ORD-123", "ORD-124");
    let answer = world.ann.get(&format!("{ALPHA}?{again}")).await.is(200);
    assert!(answer.text().contains("\"total\":1") && answer.text().contains(&id), "{}", answer.text());
    // Another team has nothing, and is not told of this one.
    assert!(world.ben.get(&format!("/requests?{asked}")).await.is(200).text().contains("\"total\":0"));
    world.ben.get(&format!("{ALPHA}?{asked}")).await.refused(404, "not-found");
}

#[tokio::test]
async fn an_export_holds_what_the_list_shows_whatever_page_is_open() {
    let world = World::at(Home::on_sqlite(&[]));
    many(&world, 1234, 567).await;
    let picked = "filters[labels][EQUALS][pick]=yes";
    let first = world.ann.get(&format!("/requests?{picked}&size=100")).await.is(200).json();
    assert_eq!((first["total"].as_i64(), first["total_is"].is_null()), (Some(567), true));
    let ids = listed(&world.ann, &format!("/requests?{picked}")).await;
    assert_eq!(ids.len(), 567);
    let next = first["next"].as_str().unwrap();
    for path in [
        format!("/requests?{picked}"),
        format!("{ALPHA}?{picked}"),
        format!("/requests?{picked}&size=20&cursor={next}"),
    ] {
        let csv = file(&world.ann, &path, "text/csv").await;
        assert!(csv.header("content-type").unwrap().starts_with("text/csv; charset=utf-8"));
        assert!(csv.header("content-disposition").unwrap().contains("requests.csv"));
        assert_eq!(column(&records(&csv.text()), "id"), ids, "{path}");
        let ndjson = file(&world.ann, &path, "application/x-ndjson").await;
        let lines: Vec<Value> =
            ndjson.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let exported: Vec<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
        assert_eq!(exported, ids, "{path}");
    }
    // Without a filter there are more than one part of an export holds, and none is left out.
    let all = file(&world.ann, "/requests?format=csv", "text/html").await;
    assert_eq!(records(&all.text()).len(), 1235);
    assert_eq!(world.ann.get("/requests?format=ndjson").await.is(200).text().lines().count(), 1234);
    // Another team gets the line of names and nothing else; who may see it gets all.
    assert_eq!(records(&file(&world.ben, "/requests", "text/csv").await.text()).len(), 1);
    assert_eq!(file(&world.ben, "/requests", "application/x-ndjson").await.text(), "");
    let refused = Answer::of(world.ben.call("GET", ALPHA).header("Accept", "text/csv")).await;
    refused.refused(404, "not-found");
    assert_eq!(records(&file(&world.vic, "/requests?q=n-1233", "text/csv").await.text()).len(), 2);
    assert_eq!(records(&file(&world.ada, "/requests", "text/csv").await.text()).len(), 1235);
    world.ann.get("/requests?format=xml").await.refused(400, "invalid-query");
    world.ann.get("/requests?format=csv&sort=name").await.refused(400, "invalid-query");
    // Every export is in the audit, with what was asked for.
    let database = rusqlite::Connection::open(world.server.home.database()).unwrap();
    let audited = |actor: &str| -> Vec<(String, String, String)> {
        let mut found = database
            .prepare("SELECT team, target, detail FROM audit WHERE act = 'request_export' AND actor = ?1 ORDER BY id")
            .unwrap();
        found
            .query_map([actor], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap()
    };
    assert_eq!(audited("vic").len(), 1);
    let (team, target, detail) = audited("ann")[2].clone();
    assert_eq!((team.as_str(), target.as_str()), ("alpha", "csv"));
    assert!(detail.contains("pick"), "{detail}");
}

#[tokio::test]
async fn a_list_of_ones_own_and_its_export_hold_what_one_made_oneself() {
    let world = World::at(Home::on_sqlite(&[]));
    let mut own = Vec::new();
    for number in 0..3 {
        own.push(world.ann.made(&fast(&format!("ann-{number}"), json!({ "note": "a" }))).await);
        world.abe.made(&fast(&format!("abe-{number}"), json!({ "note": "a" }))).await;
    }
    own.reverse();
    let total = async |path: &str| world.ann.get(path).await.is(200).json()["total"].as_i64();
    assert_eq!(total("/requests?q=a").await, Some(6));
    assert_eq!(total("/requests?mine=false").await, Some(6));
    for search in ["mine=true", "mine=true&q=nn-", "mine=true&filters[requested_by][EQUALS]=ann"] {
        assert_eq!(listed(&world.ann, &format!("/requests?{search}")).await, own, "{search}");
        let csv = file(&world.ann, &format!("/requests?{search}&size=1"), "text/csv").await;
        assert_eq!(column(&records(&csv.text()), "id"), own, "{search}");
    }
    assert_eq!(total("/requests?mine=true&filters[requested_by][EQUALS]=abe").await, Some(0));
    // An administrator sees all, and has none of its own; a team's list is always the team's.
    assert!(world.ada.get("/requests?mine=true").await.is(200).text().contains("\"total\":0"));
    world.ann.get("/requests?mine=yes").await.refused(400, "invalid-query");
    world.ann.get(&format!("{ALPHA}?mine=true")).await.refused(400, "invalid-query");
    let database = rusqlite::Connection::open(world.server.home.database()).unwrap();
    let audited = "SELECT detail FROM audit WHERE act = 'request_export' ORDER BY id LIMIT 1";
    let detail: String = database.query_row(audited, [], |row| row.get(0)).unwrap();
    assert!(detail.starts_with("mine=true"), "{detail}");
}

#[tokio::test]
async fn times_in_a_file_are_those_of_the_zone_asked_for_and_name_it() {
    let world = World::start();
    let id = world.ann.made(&fast("one", json!({}))).await;
    let ended = world.ann.ended(&id).await;
    for (zone, offset) in [
        ("Asia/Kolkata", "+05:30"),
        ("Pacific/Kiritimati", "+14:00"),
        ("Pacific/Pago_Pago", "-11:00"),
        ("UTC", "Z"),
    ] {
        let csv = file(&world.ann, &format!("/requests?format=csv&zone={zone}"), "text/html").await.text();
        let records = records(&csv);
        for (name, member) in [("created_at", "created_at"), ("finished_at", "finished_at")] {
            let time = column(&records, name).remove(0);
            assert!(time.ends_with(offset), "{time} in {zone}");
            let exact: Moment = time.parse().unwrap();
            assert_eq!(exact.to_string(), ended[member].as_str().unwrap(), "the same moment");
        }
    }
    for bad in ["format=csv&zone=Nowhere/Land", "zone=UTC", "format=ndjson&zone=UTC"] {
        world.ann.get(&format!("/requests?{bad}")).await.refused(400, "invalid-query");
    }
}

#[tokio::test]
async fn a_file_opens_safely_whatever_people_wrote() {
    let world = World::start();
    let notes =
        ["a, b; c", "say \"hi\"", "one\r\ntwo\nthree", "日本語 ÄÖ \u{1f600}", "=cmd()", "-1", "@x", "%_\\"];
    for (number, note) in notes.iter().enumerate() {
        let mut body = fast(&format!("n-{number}"), json!({ "note": note }));
        body["correlation_id"] =
            format!("={note}").chars().filter(|c| !c.is_control()).collect::<String>().into();
        let id = world.ann.made(&body).await;
        world.ann.ended(&id).await;
    }
    let csv = file(&world.ann, "/requests", "text/csv").await.text();
    let records = records(&csv);
    assert_eq!(records.len(), notes.len() + 1);
    assert!(records.iter().all(|record| record.len() == records[0].len()));
    let kept: Vec<String> = column(&records, "parameters")
        .iter()
        .rev()
        .map(|cell| serde_json::from_str::<Value>(cell).unwrap()["note"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kept, notes);
    for cell in column(&records, "correlation_id") {
        assert!(cell.starts_with("'="), "{cell:?} would be run");
    }
    for record in &records {
        assert!(record.iter().all(|cell| !cell.starts_with(['=', '+', '-', '@', '\t', '\r'])), "{record:?}");
    }
    for time in column(&records, "created_at").iter().chain(&column(&records, "finished_at")) {
        assert!(time.ends_with('Z') && time.len() == 24, "{time} has its zone");
    }
}

#[tokio::test]
async fn no_character_of_a_search_means_anything_but_itself() {
    let world = World::start();
    for (number, note) in ["100%", "a_b", "back\\slash", "plain"].iter().enumerate() {
        world.ann.made(&fast(&format!("n-{number}"), json!({ "note": note }))).await;
    }
    for (text, found) in [
        ("%", 1),
        ("_", 1),
        ("\\", 1),
        ("100%", 1),
        ("a_b", 1),
        ("a%b", 0),
        ("PLAIN", 1),
        ("n-", 4),
        ("' OR 1=1 --", 0),
    ] {
        let path = format!("/requests?{}", query(&[("q", text)]));
        let page = world.ann.get(&path).await.is(200).json();
        assert_eq!(page["total"].as_i64(), Some(found), "{text}");
        assert_eq!(page["results"].as_array().unwrap().len(), usize::try_from(found).unwrap());
    }
    for (name, text, found) in [
        ("filters[name][CONTAINS]", "%", 0),
        ("filters[name][STARTS_WITH]", "_", 0),
        ("filters[name][STARTS_WITH]", "n-", 4),
        ("filters[name][IN]", "n-1,n-2", 2),
        ("filters[name][NOT_IN]", "n-1,n-2", 2),
        ("filters[parameters][EQUALS][note]", "a_b", 1),
        ("filters[parameters][EQUALS][note]", "a%", 0),
        ("filters[parameters][EQUALS][count]", "1", 4),
        ("filters[requested_by][EQUALS]", "ann", 4),
        ("filters[channel][EQUALS]", "api", 4),
        ("filters[created_at][LESS_THAN]", "2000-01-01T00:00:00+14:00", 0),
        ("filters[created_at][GREATER_THAN_OR_EQUAL_TO]", "2000-01-01T00:00:00-11:00", 4),
    ] {
        let page = world.ann.get(&format!("/requests?{}", query(&[(name, text)]))).await.is(200).json();
        assert_eq!(page["total"].as_i64(), Some(found), "{name}={text}");
    }
    for (name, text) in [
        ("filters[name][LIKE]", "x"),
        ("filters[colour][EQUALS]", "red"),
        ("filters[created_at][LESS_THAN]", "yesterday"),
        ("filters[labels][EQUALS][system.other]", "x"),
        ("filters[name][IN]", "\"a"),
        ("q", ""),
    ] {
        let answer = world.ann.get(&format!("/requests?{}", query(&[(name, text)]))).await;
        assert!(answer.text().contains(&name.replace('"', "\\\"")), "{}", answer.text());
        answer.refused(400, "invalid-query");
    }
}

#[tokio::test]
async fn a_page_goes_on_where_the_one_before_ended_while_rows_arrive() {
    let world = World::start();
    let mut ids = Vec::new();
    for number in 0..7 {
        ids.push(world.ann.made(&fast(&format!("n-{number}"), json!({ "note": "old" }))).await);
    }
    ids.reverse();
    for search in [
        "filters[name][STARTS_WITH]=n-",
        "q=old",
        "filters[offering][EQUALS]=fast&filters[action][EQUALS]=create",
    ] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.ann.get(&format!("/requests?{search}&size=3{cursor}")).await.is(200).json();
            found.extend(
                page["results"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()),
            );
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
            // It would push the rows of the next page down by one.
            let new = world.ann.made(&fast(&fresh("n-new"), json!({ "note": "old" }))).await;
            assert!(!found.contains(&new));
        }
        assert!(found.ends_with(&ids), "{search}: {found:?}");
        assert!(found.len() <= ids.len() + 6, "{found:?}");
    }
    // What was indexed meanwhile is found as before.
    eventually("words in their index", async || {
        let page = world.ann.get("/requests?q=old&size=1").await.is(200).json();
        (page["total"].as_i64() >= Some(13)).then_some(())
    })
    .await;
}
