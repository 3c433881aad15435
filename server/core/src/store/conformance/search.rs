//! Searching: what is found is what the conditions say, however it is read.

use super::*;
use domain::{
    correlation::CORRELATION_LABEL,
    search::{Filter, Operator, Values, comparable},
};
use std::collections::BTreeMap;

/// What a store should know of one request.
#[derive(Debug, Clone)]
pub(super) struct Known {
    view: RequestView,
    key: String,
    principal: PrincipalId,
    /// What was sent for it once more: key, correlation ID, labels.
    again: Vec<(String, String, BTreeMap<String, String>)>,
}

/// Whether a request is one that a search asks for, worked out from the words of the rule alone.
fn fits(known: &Known, search: &Search) -> bool {
    let view = &known.view;
    let labelled = |labels: &BTreeMap<String, String>, correlation_id: &str, key: &str, value: &str| {
        if key == CORRELATION_LABEL {
            correlation_id == value
        } else {
            labels.get(key).is_some_and(|v| v == value)
        }
    };
    search.filters().all(|filter| holds(known, filter))
        && search.labels().iter().all(|(key, value)| {
            labelled(&view.labels, &view.correlation_id, key, value)
                || known
                    .again
                    .iter()
                    .any(|(_, correlation, labels)| labelled(labels, correlation, key, value))
        })
        && search.parameters().iter().all(|(name, value)| {
            view.parameters.get(name).is_some_and(|of| match of {
                serde_json::Value::Array(all) => all.iter().filter_map(comparable).any(|text| text == *value),
                one => comparable(one).is_some_and(|text| text == *value),
            })
        })
        && search.text().is_none_or(|text| {
            let text = text.to_lowercase();
            let holds = |word: &str| word.to_lowercase().contains(&text);
            let held =
                |labels: &BTreeMap<String, String>| labels.iter().any(|(k, v)| holds(&format!("{k}:{v}")));
            let own: BTreeMap<_, _> =
                view.labels.clone().into_iter().filter(|(key, _)| key != CORRELATION_LABEL).collect();
            holds(view.name.as_str())
                || holds(&view.id.to_string())
                || holds(&view.requested_by)
                || holds(&known.key)
                || holds(&view.correlation_id)
                || held(&own)
                || view.parameters.values().flat_map(values).any(|value| holds(&value))
                || known
                    .again
                    .iter()
                    .any(|(key, correlation, labels)| holds(key) || holds(correlation) || held(labels))
        })
}

/// The values in a value, as texts.
fn values(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::Array(all) => all.iter().flat_map(values).collect(),
        serde_json::Value::Object(members) => members.values().flat_map(values).collect(),
        one => comparable(one).into_iter().collect(),
    }
}

fn holds(known: &Known, filter: Filter<'_>) -> bool {
    let view = &known.view;
    let text = |text: &str| -> bool {
        let Values::Texts(values) = filter.values else { panic!("{filter:?}") };
        let one = values[0].as_str();
        match filter.operator {
            Operator::Equals => text == one,
            Operator::NotEquals => text != one,
            Operator::In => values.iter().any(|value| value == text),
            Operator::NotIn => values.iter().all(|value| value != text),
            Operator::Contains => text.contains(one),
            Operator::StartsWith => text.starts_with(one),
            Operator::GreaterThanOrEqualTo => text >= one,
            Operator::LessThan => text < one,
        }
    };
    let not = matches!(filter.operator, Operator::NotEquals | Operator::NotIn);
    let time = |moment: Option<Moment>| -> bool {
        let Values::Moments(moments) = filter.values else { panic!("{filter:?}") };
        match (filter.operator, moment) {
            (Operator::GreaterThanOrEqualTo, Some(moment)) => moment >= moments[0],
            (Operator::LessThan, Some(moment)) => moment < moments[0],
            (_, Some(moment)) => moments.contains(&moment) != not,
            (_, None) => not,
        }
    };
    match filter.field.as_str() {
        "state" => filter.states().contains(&view.state),
        "offering" => text(view.offering.as_str()),
        "type" => text(view.resource_type.as_str()),
        "name" => text(view.name.as_str()),
        "action" => text(&view.action),
        "requested_by" => text(&view.requested_by),
        "channel" => text(view.channel.as_str()),
        "correlation_id" => {
            text(&view.correlation_id)
                || !not && known.again.iter().any(|(_, correlation, _)| text(correlation))
        }
        "parent_id" => match filter.values {
            Values::Ids(ids) => view.parent_id.map_or(not, |id| ids.contains(&id) != not),
            _ => view.parent_id.is_some_and(|id| text(&id.to_string())),
        },
        "created_at" => time(Some(view.created_at)),
        "finished_at" => time(view.finished_at),
        other => panic!("{other}"),
    }
}

/// Makes a request out of a number: each has some of everything.
async fn make(bench: &Bench, number: usize) -> Known {
    make_with(bench, number, Object::new()).await
}

/// The same, with these parameters besides.
async fn make_with(bench: &Bench, number: usize, further: Object) -> Known {
    let pick = |of: &[&str]| of[(number * 7 + number / 5) % of.len()].to_owned();
    let team = ["blue", "green", "red"][number % 3];
    let key = format!("Key-{number}");
    let mut scope = scope_of(team, 1 + u128::from(number.is_multiple_of(4)), &key);
    let mut create = bench.create(&scope, &format!("{}-{number}", ["vm", "db", "web"][number % 3]), "small");
    let labels: BTreeMap<String, String> = [
        ("env", pick(&["prod", "test", "50%_off\\", "Straße", "日本語"])),
        ("tier", pick(&["", "1", "a:b"])),
        ("half", pick(&["one", "other"])),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    let Effect::Create { request, .. } = &mut create.effect else { panic!() };
    let view = &mut request.view;
    view.offering = name(["vm", "vm", "vm", "database"][number % 4]);
    view.resource_type = view.offering.clone();
    view.parameters = object(&json!({
        "size": pick(&["small", "large"]),
        "count": number % 5,
        "ratio": 0.5,
        "public": number.is_multiple_of(2),
        "note": pick(&["%", "_", "\\", "a,b\n\"c\"", "=cmd()", "ÄÖ"]),
        "tags": ["x", { "deep": format!("deep-{number}") }, number % 4, "x", number.is_multiple_of(3), ["inner"]],
        "zones": [pick(&["eu-1", "eu-2", "Straße"]), "7", 1e-7, 0.300_000_000_000_000_04],
        "text": "3",
        "odd \"name\"]": "odd",
    }));
    view.parameters.extend(further);
    if number.is_multiple_of(3) {
        view.correlation_id = format!("payment-ORD-{}", number / 6);
    }
    if number.is_multiple_of(5) {
        view.parent_id = Some(RequestId(Uuid::from_u128(u128::try_from(number % 2).unwrap() + 0xABCD)));
    }
    view.labels = labels.clone();
    view.labels.insert(CORRELATION_LABEL.into(), view.correlation_id.clone());
    view.requested_by = pick(&["ann", "Ben, the second", "hook shop"]);
    view.channel = [Channel::Api, Channel::Form, Channel::Hook][number % 3];
    let view = view.clone();
    create.arrived.sent_by.clone_from(&view.requested_by);
    create.arrived.channel = view.channel;
    create.arrived.labels = serde_json::to_string(&labels).unwrap();
    scope.key = create.arrived.scope.key.clone();
    let principal = create.arrived.scope.principal;
    match bench.store.submit(create).await.unwrap() {
        Submitted::First(..) => Known { view, key, principal, again: Vec::new() },
        other => panic!("{other:?}"),
    }
}

/// Ends some of them, each in its own way.
pub(super) async fn end_some(bench: &Bench, made: &mut [Known]) {
    for _ in 0..made.len() * 2 / 3 {
        let run = bench.taken("w", bench.now()).await;
        let number = run.request.view.parameters["count"].as_u64().unwrap();
        let state = match number {
            0 => RequestState::Failed,
            1 => RequestState::Unknown,
            _ => RequestState::Succeeded,
        };
        bench.store.note(run.hold(), Vec::new(), true, bench.now()).await.unwrap();
        bench.ended(run.hold(), state, bench.now()).await;
    }
    for known in made {
        let now = bench.store.request(known.view.id).await.unwrap().unwrap().view;
        assert_eq!((&now.labels, &now.parameters), (&known.view.labels, &known.view.parameters));
        known.view = now;
    }
}

/// Every page of a search, and whether each says how many there are in all.
async fn pages(bench: &Bench, scope: &ListScope, search: &Search) -> (Vec<RequestId>, i64) {
    let mut found = Vec::new();
    let mut search = search.clone();
    loop {
        let list = RequestList { scope: scope.clone(), search: search.clone() };
        let page = bench.store.requests(list.clone()).await.unwrap();
        let (rows, next) = bench.store.request_rows(list).await.unwrap();
        assert_eq!((&rows, next.map(|next| next.to_string())), (&page.results, page.next.clone()));
        found.extend(page.results.iter().map(|one| one.id));
        match next {
            Some(next) => search = search.from(Some(next)),
            None => return (found, page.total),
        }
    }
}

/// Searches, and checks that exactly what fits is found, in its order, and counted.
async fn found(bench: &Bench, made: &[Known], scope: &ListScope, query: &str) -> usize {
    let search = Search::read_query(query).unwrap();
    let within = |known: &Known| match scope {
        ListScope::All => true,
        ListScope::Team(team) => known.view.team == *team,
        ListScope::Teams(teams) => teams.contains(&known.view.team),
        ListScope::RequestedBy(principal) => known.principal == *principal,
    };
    let mut right: Vec<&Known> = made.iter().filter(|known| within(known) && fits(known, &search)).collect();
    right.sort_by_key(|known| std::cmp::Reverse((known.view.created_at, known.view.id)));
    let right: Vec<RequestId> = right.iter().map(|known| known.view.id).collect();
    let (ids, total) = pages(bench, scope, &search).await;
    assert_eq!(ids, right, "{query} in {scope:?}");
    assert_eq!(total, i64::try_from(right.len()).unwrap(), "{query}");
    right.len()
}

fn scopes() -> [ListScope; 6] {
    let teams = |teams: &[&str]| ListScope::Teams(teams.iter().map(|team| name(team)).collect());
    let many: Vec<String> = (0..20).map(|n| format!("t{n}")).chain(["red".into(), "blue".into()]).collect();
    [
        ListScope::All,
        ListScope::Team(name("green")),
        teams(&["blue", "red"]),
        teams(&[]),
        teams(&many.iter().map(String::as_str).collect::<Vec<_>>()),
        ListScope::RequestedBy(PrincipalId(Uuid::from_u128(2))),
    ]
}

/// Searches of every kind; what each asks for is worked out from the words of the rule.
#[expect(clippy::too_many_lines, reason = "a list of one line a search")]
fn queries(made: &[Known]) -> Vec<String> {
    let mut queries: Vec<String> = [
        "",
        "size=7",
        "filters[state][EQUALS]=queued",
        "filters[state][IN]=SUCCESS",
        "filters[state][IN]=failed,unknown,queued",
        "filters[state][NOT_IN]=success,queued",
        "filters[state][CONTAINS]=ed",
        "filters[state][EQUALS]=rejected",
        "filters[state][LESS_THAN]=queued&filters[state][NOT_EQUALS]=failed",
        "filters[offering][EQUALS]=database&size=3",
        "filters[offering][NOT_EQUALS]=vm",
        "filters[type][STARTS_WITH]=data",
        "filters[name][STARTS_WITH]=db-1",
        "filters[name][CONTAINS]=b-1",
        "filters[name][CONTAINS]=-",
        "filters[name][IN]=vm-0,db-1,web-2,nothing",
        "filters[name][GREATER_THAN_OR_EQUAL_TO]=vm&filters[name][LESS_THAN]=vm-3",
        "filters[action][EQUALS]=create",
        "filters[action][IN]=update,delete",
        "filters[requested_by][EQUALS]=Ben, the second",
        "filters[requested_by][IN]=\"Ben, the second\",ann",
        "filters[requested_by][NOT_IN]=\"Ben, the second\",ann",
        "filters[requested_by][CONTAINS]=ben",
        "filters[channel][EQUALS]=hook",
        "filters[channel][NOT_IN]=hook,form",
        "filters[correlation_id][EQUALS]=payment-ORD-1",
        "filters[correlation_id][STARTS_WITH]=payment-ORD-",
        "filters[correlation_id][CONTAINS]=ORD-1",
        "filters[correlation_id][NOT_EQUALS]=payment-ORD-1",
        "filters[labels][EQUALS][system.correlationId]=payment-ORD-1&filters[offering][EQUALS]=vm\
         &filters[action][EQUALS]=create&filters[state][IN]=SUCCESS&size=1",
        "filters[parent_id][EQUALS]=00000000-0000-0000-0000-00000000abcd",
        "filters[parent_id][NOT_EQUALS]=00000000-0000-0000-0000-00000000ABCD",
        "filters[parent_id][STARTS_WITH]=00000000-0000",
        "filters[parent_id][CONTAINS]=abce",
        "filters[labels][EQUALS][env]=prod&filters[labels][EQUALS][tier]=1",
        "filters[labels][EQUALS][env]=50%25_off\\",
        "filters[labels][EQUALS][env]=Straße",
        "filters[labels][EQUALS][env]=STRASSE",
        "filters[labels][EQUALS][env]=Prod",
        "filters[labels][EQUALS][env]=日本語",
        "filters[labels][EQUALS][tier]=",
        "filters[labels][EQUALS][tier]=a:b",
        "filters[parameters][EQUALS][size]=small&size=4",
        "filters[parameters][EQUALS][count]=3",
        "filters[parameters][EQUALS][count]=3.0",
        "filters[parameters][EQUALS][text]=3",
        "filters[parameters][EQUALS][ratio]=0.5",
        "filters[parameters][EQUALS][public]=true",
        "filters[parameters][EQUALS][tags]=x",
        "filters[parameters][EQUALS][tags]=3",
        "filters[parameters][EQUALS][tags]=3.0",
        "filters[parameters][EQUALS][tags]=true",
        "filters[parameters][EQUALS][tags]=inner",
        "filters[parameters][EQUALS][tags]=[\"x\"]",
        "filters[parameters][EQUALS][zones]=7&filters[name][STARTS_WITH]=vm",
        "filters[parameters][EQUALS][zones]=eu-1&size=3",
        "filters[parameters][EQUALS][zones]=eu-1&filters[state][EQUALS]=queued",
        "filters[parameters][EQUALS][zones]=1e-7&filters[name][STARTS_WITH]=vm",
        "filters[parameters][EQUALS][zones]=0.30000000000000004",
        "filters[parameters][EQUALS][zones]=Straße&filters[parameters][EQUALS][tags]=false",
        "filters[parameters][EQUALS][deep]=deep-1",
        "filters[parameters][EQUALS][odd \"name\"]]=odd",
        "filters[parameters][EQUALS][note]=a,b%0A\"c\"",
        "filters[parameters][EQUALS][nothing]=small",
        "filters[parameters][EQUALS][size]=small&filters[parameters][EQUALS][count]=1&filters[state][EQUALS]=unknown",
        "q=small",
        "q=SMALL",
        "q=straße",
        "q=äö",
        "q=日本",
        "q=deep-11",
        "q=key-1",
        "q=env:prod",
        "q=ord-1",
        "q=%25",
        "q=_",
        "q=\\",
        "q=cmd()",
        "q=ben, the",
        "q=0190-7000",
        "q=00000000-0190",
        "q=nowhere",
        "q=%27 OR 1=1 --",
        "q=\"c\"",
        "q=sm",
        "q=ra",
        "q=11",
        "q=3",
        "q=g",
        "q=b-",
        "q=-1",
        "q=e:",
        "q=öß",
        "q=zq",
        "filters[channel][EQUALS]=api",
        "filters[offering][EQUALS]=vm&filters[channel][EQUALS]=form",
        "filters[offering][EQUALS]=vm&filters[requested_by][EQUALS]=ann&filters[labels][EQUALS][env]=prod",
        "filters[labels][EQUALS][tier]=1&filters[parameters][EQUALS][size]=large&filters[state][EQUALS]=queued",
        "q=small&filters[labels][EQUALS][env]=prod&filters[name][CONTAINS]=vm-",
    ]
    .map(str::to_owned)
    .to_vec();
    let middle = &made[made.len() / 2].view;
    let (at, ended) =
        (middle.created_at, made.iter().filter_map(|known| known.view.finished_at).max().unwrap());
    for (field, time) in [("created_at", at), ("finished_at", ended)] {
        queries.push(format!("filters[{field}][GREATER_THAN_OR_EQUAL_TO]={time}&size=6"));
        queries.push(format!("filters[{field}][LESS_THAN]={time}&filters[offering][EQUALS]=vm"));
        queries.push(format!("filters[{field}][EQUALS]={time}"));
        queries.push(format!("filters[{field}][NOT_EQUALS]={time}"));
        queries.push(format!("filters[{field}][IN]={time},2026-01-01T00:00:00Z"));
        queries.push(format!("filters[{field}][NOT_IN]={time}"));
    }
    queries.push(format!("q={}", middle.id));
    queries.push(format!("q={}", &middle.id.to_string()[20..]));
    queries
}

/// Makes so many requests.
pub(super) async fn some(bench: &Bench, count: usize) -> Vec<Known> {
    let mut made = Vec::new();
    for number in 0..count {
        made.push(make(bench, number).await);
    }
    made
}

/// Makes one more, of this number.
pub(super) async fn one_more(bench: &Bench, made: &mut Vec<Known>, number: usize) {
    made.push(make(bench, number).await);
}

/// Makes every kind of search, and checks that it finds exactly what fits.
pub(super) async fn finds_all(bench: &Bench, made: &[Known]) {
    let queries = queries(made);
    let mut fruitful = 0;
    for query in &queries {
        for scope in scopes() {
            fruitful += usize::from(found(bench, made, &scope, query).await > 0);
        }
    }
    assert!(fruitful > queries.len() * 2, "{fruitful} of {} found anything", queries.len() * 6);
}

pub(super) async fn a_search_finds_what_its_conditions_say(bench: Bench) {
    let mut made = some(&bench, 45).await;
    end_some(&bench, &mut made).await;
    finds_all(&bench, &made).await;
}

pub(super) async fn frequent_and_rare_matches_are_read_alike(bench: Bench) {
    // More than are taken at once, so that lists are walked through.
    let bench = Arc::new(bench);
    let mut tasks = tokio::task::JoinSet::new();
    for part in 0..40 {
        let bench = Arc::clone(&bench);
        tasks.spawn(async move {
            let mut made = Vec::new();
            for number in 0..260 {
                made.push(make(&bench, part * 260 + number).await);
            }
            made
        });
    }
    let mut made: Vec<Known> = tasks.join_all().await.into_iter().flatten().collect();
    // Further keys: of a request that is found already, and of one that is found by what came with the key.
    send_again(&bench, &mut made).await;
    let other = made.iter_mut().find(|known| known.view.labels["half"] == "other").unwrap();
    send_once_more(&bench, other, "a-third-key", "order-78", &[("half", "one")]).await;
    for _ in 0..3 {
        let run = bench.taken("w", bench.now()).await;
        bench.ended(run.hold(), RequestState::Failed, bench.now()).await;
    }
    for known in &mut made {
        known.view = bench.store.request(known.view.id).await.unwrap().unwrap().view;
    }
    let list = |query: &str, scope: &ListScope| RequestList {
        scope: scope.clone(),
        search: Search::read_query(query).unwrap().with_size(500),
    };
    // As a database does by itself in time; on a busy machine that comes after the searches.
    bench.place.take_stock().await;
    for query in [
        "",
        "filters[offering][EQUALS]=vm",
        "filters[channel][EQUALS]=form",
        "filters[offering][EQUALS]=vm&filters[channel][EQUALS]=form&filters[parameters][EQUALS][text]=3",
        "filters[offering][EQUALS]=database&filters[labels][EQUALS][env]=Straße",
        "filters[labels][EQUALS][env]=prod&filters[labels][EQUALS][tier]=1",
        "q=pa",
        "q=zq",
        "q=p",
        "filters[offering][EQUALS]=vm&filters[state][IN]=queued,failed",
        "filters[labels][EQUALS][env]=prod",
        "filters[labels][EQUALS][half]=one",
        "filters[labels][EQUALS][half]=one&filters[channel][EQUALS]=form",
        "filters[parameters][EQUALS][size]=small",
        "filters[state][IN]=queued,success",
        "filters[state][NOT_EQUALS]=queued",
        "filters[parameters][EQUALS][ratio]=0.5",
        "filters[parameters][EQUALS][ratio]=0.5&filters[name][EQUALS]=vm-300",
        "filters[name][CONTAINS]=vm-",
        "filters[name][STARTS_WITH]=web-1",
        "q=payment",
        "q=payment-ord-17",
        "q=日本",
        "q=small&filters[channel][EQUALS]=form",
        "filters[created_at][GREATER_THAN_OR_EQUAL_TO]=1970-01-01T00:00:00Z",
    ] {
        for scope in scopes() {
            let search = Search::read_query(query).unwrap();
            let within = |known: &&Known| match &scope {
                ListScope::All => true,
                ListScope::Team(team) => known.view.team == *team,
                ListScope::Teams(teams) => teams.contains(&known.view.team),
                ListScope::RequestedBy(principal) => known.principal == *principal,
            };
            let mut right: Vec<&Known> =
                made.iter().filter(within).filter(|known| fits(known, &search)).collect();
            right.sort_by_key(|known| std::cmp::Reverse((known.view.created_at, known.view.id)));
            let page = bench.store.requests(list(query, &scope)).await.unwrap();
            let ids: Vec<RequestId> = page.results.iter().map(|one| one.id).collect();
            let right_ids: Vec<RequestId> = right.iter().take(500).map(|known| known.view.id).collect();
            assert_eq!(ids, right_ids, "{query} in {scope:?}");
            let all = right.len();
            let told =
                if all > 10_000 { (10_000, Some("at_least")) } else { (i64::try_from(all).unwrap(), None) };
            assert_eq!((page.total, page.total_is.as_deref()), told, "{query} in {scope:?}");
            assert_eq!(page.next.is_some(), all > 500, "{query} in {scope:?}");
        }
    }
}

pub(super) async fn no_character_of_a_value_means_anything_but_itself(bench: Bench) {
    let mut made = Vec::new();
    for number in 0..12 {
        made.push(make(&bench, number).await);
    }
    for literal in [
        "%", "_", "\\", "\\%", "%%%", "___", "a*", "?", "[a]", "\"", "''", "\u{0}", "*", "NEAR", "-",
        "a AND b",
    ] {
        for name in [
            "q",
            "filters[name][CONTAINS]",
            "filters[name][STARTS_WITH]",
            "filters[requested_by][EQUALS]",
            "filters[correlation_id][CONTAINS]",
            "filters[labels][EQUALS][env]",
            "filters[parameters][EQUALS][note]",
        ] {
            let search = Search::read([(name, literal)]).unwrap();
            found(&bench, &made, &ListScope::All, &search.query()).await;
        }
    }
    // What is written like a NUL, and is none.
    let further = object(&json!({ "path": "C:\\u0000\\x", "paths": ["C:\\u0000\\x", "\\\\u0000"] }));
    made.push(make_with(&bench, 12, further).await);
    for (name, value) in
        [("path", "C:\\u0000\\x"), ("paths", "C:\\u0000\\x"), ("paths", "\\\\u0000"), ("text", "3")]
    {
        for further in ["", "&filters[name][STARTS_WITH]=vm", "&filters[state][EQUALS]=queued", "&q=u0000"] {
            let search = Search::read([(domain::search::parameter(name), value)]).unwrap();
            let query = format!("{}{further}", search.query());
            assert!(found(&bench, &made, &ListScope::All, &query).await > 0, "{query}");
        }
    }
    for literal in ["\"", "odd\"", "$", "$.size", "[0]", "#-1", "size\u{0}"] {
        let search = Search::read([(domain::search::parameter(literal), "small")]).unwrap();
        assert_eq!(found(&bench, &made, &ListScope::All, &search.query()).await, 0, "{literal}");
    }
}

/// Sends the first once more, under another key and correlation ID and with labels of its own.
pub(super) async fn send_again(bench: &Bench, made: &mut [Known]) {
    send_once_more(bench, &mut made[0], "another-key", "order-77", &[("run", "night")]).await;
}

async fn send_once_more(
    bench: &Bench,
    known: &mut Known,
    key: &str,
    correlation_id: &str,
    labels: &[(&str, &str)],
) {
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let (team, of) = (known.view.team.clone(), known.view.clone());
    let mut again = bench.create(&scope_of(team.as_str(), 7, key), of.name.as_str(), "small");
    let Effect::Create { request, .. } = &mut again.effect else { panic!() };
    request.view.offering = of.offering.clone();
    request.view.resource_type = of.resource_type.clone();
    request.view.parameters = of.parameters.clone();
    again.arrived.correlation_id = Some(correlation_id.into());
    again.arrived.labels = serde_json::to_string(&labels).unwrap();
    match bench.store.submit(again).await.unwrap() {
        Submitted::Existing(_, id) => assert_eq!(id, of.id),
        other => panic!("{other:?}"),
    }
    known.again.push((key.into(), correlation_id.into(), labels));
}

/// What [`send_again`] sent, as it is looked for.
pub(super) const SENT_AGAIN: [&str; 11] = [
    "filters[labels][EQUALS][system.correlationId]=order-77",
    "filters[correlation_id][EQUALS]=order-77",
    "filters[correlation_id][IN]=order-77,x",
    "filters[correlation_id][CONTAINS]=der-7",
    "filters[labels][EQUALS][run]=night",
    "filters[labels][EQUALS][run]=night&filters[labels][EQUALS][system.correlationId]=order-77",
    "q=another-KEY",
    "q=order-77",
    "q=run:night",
    "filters[labels][EQUALS][run]=night&filters[offering][EQUALS]=vm&filters[parameters][EQUALS][ratio]=0.5",
    "filters[labels][EQUALS][run]=night&filters[requested_by][NOT_EQUALS]=nobody",
];

/// Makes each of these searches, and checks that it finds exactly the one that fits.
pub(super) async fn finds_one(bench: &Bench, made: &[Known], queries: &[&str]) {
    for query in queries {
        assert_eq!(found(bench, made, &ListScope::All, query).await, 1, "{query}");
    }
}

pub(super) async fn what_was_sent_for_what_was_there_is_found_with_it(bench: Bench) {
    let mut made = vec![make(&bench, 1).await, make(&bench, 2).await];
    send_again(&bench, &mut made).await;
    for indexed in [false, true] {
        if indexed {
            bench.store.index_words(100).await.unwrap();
        }
        finds_one(&bench, &made, &SENT_AGAIN).await;
        let not = "filters[correlation_id][NOT_EQUALS]=order-77";
        assert_eq!(found(&bench, &made, &ListScope::All, not).await, 2);
    }
}

pub(super) async fn words_are_found_before_and_after_they_are_indexed(bench: Bench) {
    let mut made = Vec::new();
    let mut indexed = 0;
    for round in 0..3 {
        for number in 0..8 {
            made.push(make(&bench, round * 8 + number).await);
        }
        for query in ["q=日本語", "q=deep-1", "q=50%25_off\\", "filters[labels][EQUALS][env]=prod", "q=key-2"]
        {
            found(&bench, &made, &ListScope::All, query).await;
        }
        // All, some and none of the rest.
        indexed += bench.store.index_words(5).await.unwrap();
    }
    while let more @ 1.. = bench.store.index_words(5).await.unwrap() {
        indexed += more;
    }
    // PostgreSQL does it by itself.
    assert!([0, 24].contains(&indexed), "{indexed}");
    for query in ["q=日本語", "q=deep-1", "q=50%25_off\\", "filters[labels][EQUALS][env]=prod", "q=key-2"]
    {
        assert!(found(&bench, &made, &ListScope::All, query).await > 0, "{query}");
    }
}
